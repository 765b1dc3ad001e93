"""Masks: what each rule finds and leaves, that the twin agrees, that a masked text is done."""

# ruff: noqa: E501, RUF001 - look-alike characters are what is tested; lists of pieces

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gristmill.documents.edits import apply_edits
from gristmill.documents.errors import UsageError
from gristmill.documents.stage import checked_measure, checked_verdict
from gristmill.filters import PII, _pii_tables

# Secrets are put together here, so that no scanner of repositories finds one.
AWS = "AKIA" + "IOSFODNN7ABCDEFG"
GITHUB = "ghp_" + "a1B2" * 9
JWT = (
    "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0" + "." + "dozjgNryP4J3jVm" * 2
)
BLOCK = "-----BEGIN RSA PRIVATE" + " KEY-----\n{}-----END RSA PRIVATE" + " KEY-----"
BODY = "MIIEpAIBAAKCAQEA7Zq3\n" * 5
SECRET = "x8Kd92Lmq0ZpW73hTy5" + "aB"
HEXES = "a1b2c3d4" + "e5f6a7b8c9d0e1f2a3b4c5d6"
LINES = (("MIIEpAIBAAKCAQEA7Zq3" * 4)[:64] + "\n") * 4
DRAWN = [  # of all that keyboards have
    "xK#9!mZ@q&" + "Lp*7vR3$", "9f$K!qZ2(m" + ";Vx,7{pL0w", "p%7Gz^Q2;w" + "K!d9$LrB4)",
    "MyS3cr3t$" + "Passw0rd!2", "$2b$12$KIXhQJ8v7Yz0rT1u" + "W2xY3e9fG4hI5jK6lM7nO8pQ9rS0tU1v",
]  # fmt: skip
KEYS = [  # of more forms
    "xa" + "pp-1-A012-123-" + HEXES * 2, "wh" + "sec_" + SECRET * 2, "sk-" + "svcacct-" + SECRET * 3,
    "sk-" + "or-v1-" + HEXES * 2, "do" + "p_v1_" + HEXES * 2, "sh" + "pat_" + HEXES,
    "dc" + "kr_pat_" + SECRET + "a1B2c3", "gl" + "rt-" + SECRET,
    "hooks.slack" + ".com/services/T00000000/B00000000/" + SECRET + "a1B2",
]  # fmt: skip


def batch_of(values) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(values, pa.large_string())})


def masked(text: str, stage: PII | None = None) -> str:
    batch = batch_of([text])
    made = checked_measure(stage or PII(), batch)
    return apply_edits(batch.column("text"), made.edits)[0].as_py()


FILLED = [  # by code, or to be filled in: no secrets
    "${PASSWORD_FROM_ENV_2a3b4c}", "{{ token_v2.x1y2z3 }}", "{a1b2c3d4-e5f6-7890-abcd-ef1234567890}",
    "your password here 1a2b3c4d", "Enter 1 of 3 codes: A1, B2, C3, D4", "3 of 12 (see A1 to B2)",
    r"^(?=.*[A-Z])(?=.*\d)[A-Za-z\d@$!%*?&]{8,}$", "f(a1, b2) + g(c3, d4)", "$(cat /run/s3/db1/x9)",
    "%(password1)s:%(x2)s:%(y3)s", "<your-t0k3n-h3r3-123>", "en-US,en;q=0.9,fr;q=0.8", "a1b2;c3d4;e5f6;g7h8",
    "rgba(0x1f,0x2e,0x3d,0x4f)", "SELECT * FROM t1 WHERE a1=$1 AND b2=$2", "+f(x1,Y2)[z3]+g(A4)+",
    "<EMAIL> aB3dE5gH7jK9mN1pQ3sT",
]  # fmt: skip
FOUND = [
    ("mail jo.doe+x@mail.acme.co.uk.", "mail <EMAIL>."),
    ("<b@c.de>", "<<EMAIL>>"),
    ("joe@mail.com(work) joe@mail.de[1]", "<EMAIL>(work) <EMAIL>[1]"),
    (
        "joe@mail.com.Please joe@my.de-mail.de-2 joe@mail.com请",
        "<EMAIL>.Please <EMAIL>-2 <EMAIL>请",
    ),
    (
        "joe@mail.comEnglish joe@mail.frSuite joe@mail.ruЭто",
        "<EMAIL>English <EMAIL>Suite <EMAIL>Это",
    ),
    ("کوردBaba_9@yahoo.com имяjoe@mail.com", "کورد<EMAIL> имя<EMAIL>"),
    ("jörg@müller.de, ПРИМЕР@ПОЧТА.РФ, josé.ruiz@correo.es", "<EMAIL>, <EMAIL>, <EMAIL>"),
    ("用户@例子.中国 请用户@例子.中国看 用户123@例子.中国", "<EMAIL> <EMAIL>看 用户<EMAIL>"),
    ("ｊｏｅ＠ｍａｉｌ．ｃｏｍ joe＠mail.com", "<EMAIL> <EMAIL>"),
    (r"'\njoe@mail.com' joe@mail.com:pass", r"'\n<EMAIL>' <EMAIL>:pass"),
    ("电话：１３８００１３８０００ هاتف:+٩٦٦ ٥٠ ١٢٣ ٤٥٦٧", "电话：<PHONE> هاتف:<PHONE>"),
    ("editor—joe@mail.com Köln)–joe@mail.com", "editor—<EMAIL> Köln)–<EMAIL>"),
    ("Tel. 020 7946 0958—2024, 415-555-2671–2019", "Tel. <PHONE>—2024, <PHONE>–2019"),
    ("415-555-2671 415–555–2671", "<PHONE> <PHONE>"),
    ("tel. 860486102 2018-10-31 13:00", "tel. <PHONE> 2018-10-31 13:00"),
    (
        "joe@ma\u200bil.com jo\xade@mail.com joe@mail.com\u200bnow",
        "<EMAIL> <EMAIL> <EMAIL>\u200bnow",
    ),
    ("joe\u200b@mail.com\u200b, \ufeffjoe@mail.com", "<EMAIL>\u200b, \ufeff<EMAIL>"),
    ("joe&#64;mail.com joe&#x40;mail.com joe&commat;mail.com", "<EMAIL> <EMAIL> <EMAIL>"),
    ("&#106;oe&#64;mail.co&#109;?to=%3Cjoe%40mail.com%3E&x", "<EMAIL>?to=%3C<EMAIL>%3E&x"),
    ("a=joe%2Bx%40mail.com", "a=<EMAIL>"),
    ("هاتف: ٠١٢٣٤٥٦٧٨٩ फोन: ९८७६५ ४३२१० โทร 02-123-4567", "هاتف: <PHONE> फोन: <PHONE> โทร <PHONE>"),
    (
        "Τηλ: 210 1234567 ΤΗΛ. 210 1234567 טלפון: 03-1234567",
        "Τηλ: <PHONE> ΤΗΛ. <PHONE> טלפון: <PHONE>",
    ),
    ("tel +12 345 678 90 免費熱線:400-639-3868", "tel <PHONE> 免費熱線:<PHONE>"),
    ("de89 3704 0044 0532 0130 00 De89370400440532013000", "<IBAN> <IBAN>"),
    ("IBAN: gb82west12345698765432, DE89-3704-0044-0532-0130-00", "IBAN: <IBAN>, <IBAN>"),
    ("(415)\u00a0555\u20112671 +49\u202f30\u00a01234567", "<PHONE> <PHONE>"),
    (
        "\u202a+1\u00a0415–555—2671\u202c 415-555-2671—415-555-2672",
        "\u202a<PHONE>\u202c <PHONE>—<PHONE>",
    ),
    ("Phone: +1.4155552671 +1.415.555.2671 +353.1234.5678", "Phone: <PHONE> <PHONE> <PHONE>"),
    ("PH: 123 4567 To order: 415-555-2671", "PH: <PHONE> To order: <PHONE>"),
    ("Tel. 0800 000 000 -415-555-2671", "Tel. <PHONE> -<PHONE>"),
    ("4111\u20111111–1111—1111", "<CARD>"),
    (
        "DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000 ＧＢ82WEST12345698765432",
        "<IBAN> <IBAN>",
    ),
    ("９３.184．216.34", "<IP>"),
    ("邮箱abc@qq.com。", "邮箱<EMAIL>。"),
    ("a@xn--bcher-kva.xn--p1ai", "<EMAIL>"),
    ("@user@mastodon.social, @joe", "@<EMAIL>, @joe"),
    ("joe&shy;smith@mail.com joe@ma&#8203;il.com", "<EMAIL> <EMAIL>"),
    ("joe&#00064;mail&period;com &lt;joe@mail.com&gt;", "<EMAIL> &lt;<EMAIL>&gt;"),
    ("Tel.&nbsp;020&#160;7946&#xA0;0958 +49&thinsp;30&nbsp;1234567", "Tel.&nbsp;<PHONE> <PHONE>"),
    (
        "415&#8209;555&ndash;2671 Tel&nbsp;&ndash;&nbsp;020 7946 0958",
        "<PHONE> Tel&nbsp;&ndash;&nbsp;<PHONE>",
    ),
    (
        "DE89&nbsp;3704&nbsp;0044&nbsp;0532&nbsp;0130&nbsp;00 4111&nbsp;1111&nbsp;1111&nbsp;1111",
        "<IBAN> <CARD>",
    ),
    (
        "m&uuml;ller@mail.de &#252;&#xFC;@k&ouml;ln.de Jos&eacute;.Ruiz@correo.es",
        "<EMAIL> <EMAIL> <EMAIL>",
    ),
    (
        "&#106&#111&#101&#64acme.com joe&#064acme&#46com &#20013;&#22269;@&#20363;.&#20013;&#22269;",
        "<EMAIL> <EMAIL> <EMAIL>",
    ),
    (
        "joe%2Esmith%40mail%2Eco%2euk T&eacute;l&eacute;phone : 01 23 45 67 89",
        "<EMAIL> T&eacute;l&eacute;phone : <PHONE>",
    ),
    (
        "(Tel.) 030 123456 (Tel): 030 123456 [Fax] 02-1234-5678",
        "(Tel.) <PHONE> (Tel): <PHONE> [Fax] <PHONE>",
    ),
    (
        "（電話）03-1234-5678 【TEL】 03-1234-5678 Phone (mobile): 07700 900123",
        "（電話）<PHONE> 【TEL】 <PHONE> Phone (mobile): <PHONE>",
    ),
    ("**Phone:** 020 7946 0958 *Tel*: 020 7946 0958", "**Phone:** <PHONE> *Tel*: <PHONE>"),
    ("Tel: 900 900 900 Tel: 900 600 800", "Tel: <PHONE> Tel: <PHONE>"),
    (
        "Tel. +49 30 123456 mm +49 30 123456 km 5 Tel 020 7946 0958 people",
        "Tel. <PHONE> mm <PHONE> km 5 Tel <PHONE> people",
    ),
    ("Tel. 030 123456 5 min walk 电话13800138000元", "Tel. <PHONE> min walk 电话<PHONE>元"),
    ("điện thoại 0912.345.678 đ Tel. 601.234.567", "điện thoại <PHONE> đ Tel. <PHONE>"),
    ("Bankverbindung: gb82 west 1234 5698 7654 32", "Bankverbindung: <IBAN>"),
    (
        "Cell: 020 7946 0958 GSM 0412 345 678 Handy 0151 2345678",
        "Cell: <PHONE> GSM <PHONE> Handy <PHONE>",
    ),
    (
        "携帯 090-1234-5678 電話 03-1234-5678 手机:13800138000",
        "携帯 <PHONE> 電話 <PHONE> 手机:<PHONE>",
    ),
    ("Móvil 612 345 678 Portable : 06 12 34 56 78", "Móvil <PHONE> Portable : <PHONE>"),
    ("Komórka 601 234 567 моб. 8 912 345-67-89", "Komórka <PHONE> моб. <PHONE>"),
    ("тел 22-33-44 Tel 02.12345678 Tel. 93.4123456", "тел <PHONE> Tel <PHONE> Tel. <PHONE>"),
    ("Tel. 123456 13:00 Tel. 01.02.03.04.05", "Tel. <PHONE> 13:00 Tel. <PHONE>"),
    ("ВенаТел. 1234567 ΑΘΗΝΑΣΤηλ. 2410622364", "ВенаТел. <PHONE> ΑΘΗΝΑΣΤηλ. <PHONE>"),
    ("https://user:pa55@host.com/x", "https://user:<EMAIL>/x"),
    ("from 93.184.216.34:80", "from <IP>:80"),
    ("http://8.8.8.8/", "http://<IP>/"),
    ("at 2a00:1450:4001:81b::200e, and", "at <IP>, and"),
    ("[2606:2800:220:1:248:1893:25c8:1946]", "[<IP>]"),
    ("call (415) 555-2671 or 1-415-555-2671.", "call <PHONE> or <PHONE>."),
    ("415.555.2671", "<PHONE>"),
    ("+49 30 1234567", "<PHONE>"),
    ("+33 1 23 45 67 89 und", "<PHONE> und"),
    ("Tel.: (030) 123 456", "Tel.: <PHONE>"),
    ("电话:13800138000", "电话:<PHONE>"),
    ("Téléphone 01 23 45 67 89", "Téléphone <PHONE>"),
    ("+1 555 123 4567 93.184.216.34", "<PHONE> <IP>"),
    ("ТЕЛ. 8 (495) 123-45-67 ТЕЛЕФОН 8 495 123-45-67", "ТЕЛ. <PHONE> ТЕЛЕФОН <PHONE>"),
    ("Phone No. 020 7946 0958, Mobile no: 07700 900123", "Phone No. <PHONE>, Mobile no: <PHONE>"),
    ("手机 13812345678", "手机 <PHONE>"),
    ("NI79BAMC00000000000003123123 BI4210000100010000332045181", "<IBAN> <IBAN>"),
    ("DJ2100010000000154000100186 SO211000001001000100141", "<IBAN> <IBAN>"),
    ("DE89 3704 0044 0532 0130 00", "<IBAN>"),
    ("GB82WEST12345698765432,", "<IBAN>,"),
    ("4111 1111 1111 1111", "<CARD>"),
    ("378282246310005 3782-822463-10005", "<CARD> <CARD>"),
    (AWS, "<KEY>"),
    (f"token {GITHUB}.", "token <KEY>."),
    (f"Bearer {JWT}", "Bearer <KEY>"),
    (BLOCK.format(BODY), "<PRIVATE_KEY>"),
    (f"api_key = '{SECRET}'", "api_key = '<SECRET>'"),
    (f'"client-secret": "{SECRET}"', '"client-secret": "<SECRET>"'),
    *(
        (f"secret: '{SECRET[:9]}{mark}{SECRET[9:]}'", "secret: '<SECRET>'")
        for mark in "$(;,{ <>|)}"
    ),
    *((f'token="{value}",', 'token="<SECRET>",') for value in DRAWN),
    (f'password="{SECRET[:9]}\\"{SECRET[9:]}" "', 'password="<SECRET>" "'),
    (f'"{{\\"token\\": \\"{SECRET}\\"}}"', '"{\\"token\\": \\"<SECRET>\\"}"'),
    (f"export DB_PASSWORD={SECRET}\n", "export DB_PASSWORD=<SECRET>\n"),
    *((f"api_key={HEXES}{mark}x", f"api_key=<SECRET>{mark}x") for mark in "&,;) "),
    (f"token \t =\t   '{SECRET}'", "token \t =\t   '<SECRET>'"),
    (f"password:str='{SECRET}'", "password:str='<SECRET>'"),
    (f"api_key : Optional[str] = '{SECRET}'", "api_key : Optional[str] = '<SECRET>'"),
    (f"API_KEY_PROD={SECRET}", "API_KEY_PROD=<SECRET>"),
    (f"Authorization: Bearer {SECRET}", "Authorization: Bearer <SECRET>"),
    (f"'Authorization': 'Basic {SECRET}'", "'Authorization': 'Basic <SECRET>'"),
    (f"Name=x;AccountKey={SECRET}{SECRET}==;End", "Name=x;AccountKey=<SECRET>;End"),
    *((f"({key})", "(<KEY>)") for key in KEYS),
    (GITHUB + BLOCK.format(BODY), "<KEY><PRIVATE_KEY>"),
    ("sk-" + "proj-" + SECRET * 3 + BLOCK.format(BODY), "<KEY><PRIVATE_KEY>"),
    ("AI" + "za" + SECRET[:16] + SECRET[:18] + "-93.184.216.34", "<KEY><IP>"),
    (
        BLOCK.format("Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123AB\n\n" + LINES),
        "<PRIVATE_KEY>",
    ),
    (
        BLOCK.format("Version: GnuPG v2 (GNU/Linux)\n\n" + LINES).replace(
            "RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"
        ),
        "<PRIVATE_KEY>",
    ),
    ("> " + BLOCK.format(LINES).replace("\n", "\n> "), "> <PRIVATE_KEY>"),
    ("# " + BLOCK.format(LINES).replace("\n", "\n# "), "# <PRIVATE_KEY>"),
    ('"' + BLOCK.format(LINES).replace("\n", '\\n" +\n    "') + '"', '"<PRIVATE_KEY>"'),
    (BLOCK.format(LINES * 300), "<PRIVATE_KEY>"),
    (BLOCK.format(LINES)[:200], "<PRIVATE_KEY>"),
    (BLOCK.format(LINES)[:226] + "\n\nThis is prose.", "<PRIVATE_KEY>\n\nThis is prose."),
]
LEFT = [
    "git@github.com:a/b icon@2x.png q@k.transpose(1) a@b @name a@b.c x@y.12 .@a.com",
    "a@example.com b@mail.example.org c@x.test",
    r"'\n@pytest.fixture' x@app.route q@k.mT x@k.toDevice x@a.co.shape q@k.to(1) w@x.at[0] x@self.weight a@b.com2",
    "ssh me@host.com git clone me@host.com:a/b me@host.com:/srv me@host.com:~ ssh://me@host.com/x",
    "邮箱@qq.com 用户@qq.com a@\u0301b.com",
    "at +37.7749295, +122.4194155 and +40.6894-074.0447/ +37.7749295 -122.4194155",
    "pH 7.35-7.45, ph: 4.5-5.5 (2004) ph 12.3456 pH 1234567",
    "phone 2015-2016 fax 2015/16 Tel. 12.05.2024 mobile 2024–05–12 Tel. 10.00-12.30 handy 1 000 000",
    "Call now: 2024-10-12 Phone 2024-10-12 10:30 Tel. 12.10.2024 10:30 Tel. 2024 10:30",
    "Phone: 12/10/24 Mobile 12.10.24 Tel. 12.05.2024 - 15.05.2024 Cell 150 (2012) 1107",
    "Phone 1080x1920 Phone 1080/1920 Mobile 1920 1080 GSM 900/1800/1900",
    "Tel: 12.50 € Mobile 1299.00 mobile 123456.78 Mobile: 149.99 - 199.99 Phone 3.141592",
    "phone 1.234.567 phone 1.234.567,89 cell 123456",
    "Mobile 09:00-17:00 Phone: 09.00-17.00 Tel. 08.00-12.00 / 13.00-17.00 Fax 8-12 / 13-17 Tel. 0900-1730",
    "Hôtel 1234567 хотел 1234567 ХОТЕЛ 1234567",
    "gb82 west 1234 5698 7654 32 &nbsp;@mail.com R&D",
    "SKU 415-555-2671 Part No. 415-555-2671 order no. 4111 1111 1111 1111 ISBN: 4111111111111111",
    "127.0.0.1 10.1.2.3 192.168.100.1 172.16.0.100 169.254.1.100 224.0.0.251 203.0.113.9",
    "version 1.200.3.4 Chrome/91.0.100.124 1.2.3.4 300.1.1.1 1.2.3.400 01.102.3.4 v1.200.3.4",
    "1.100.3.4.5 9.1.100.3.4",
    'numpy==1.26.101.0 version="4.0.130.0" <Version>4.0.130.0</Version> "version": "1.2.130.4"',
    "of EC 3.4.21.104, (EC 2.7.11.101) Table 3.1.100.2 § 5.120.3.1 fig. 12.4.130.2",
    "clause 8.4.120.1 Article 4.100.2.1 EC number 1.14.13.178",
    "2001:db8::1:2 fe80::1:2:3 ::1 a::b std::vector 10:30:45 12:34:56:78:9a:bc",
    "2024-05-12 12.05.2024 1,234,567 3.14159265358979 978-3-16-148410-0 hotel 123456",
    "415-155-2671 115-555-2671 415-555-26711 id-415-555-2671 +123 ++49301234567",
    "tel-01167309 tel 12345",
    "Tel: 2026年3月1日 手机 ￥129900 手机 129900元 携帯 150000円 휴대폰 1299000원 電話 令和8年3月1日",
    "โทร 12/03/2569 تلفن 1404/12/10 همراه ۱۴۰۴/۱۲/۱۰ هاتف 1447-03-12 電話 113/05/12 전화 2026. 3. 1.",
    "điện thoại 12.990.000đ điện thoại 129 900 vnd моб 129 900 руб handy 129900,00 ponsel 12.500.000",
    "(hotel) 1234567 Tel) 030 123456 [Tel) 030 123456 Tel. ) 030 123456 【Tel] 030 123456",
    "Mobile 480 640 768 GSM 850 900 1800 1900 H&ocirc;tel 1234567 mobile 1234567 users",
    "m&uuml;ller&x.de &uuml;@ joe&#x40acme.com a&#640b.com 20%2Eoff &#00000064x.com",
    *(f"""token = "{value}" '{value}' secret: '{value}'""" for value in FILLED),
    "+12 500 000 euros +12 345 678 | +1 234 567 | +25 000 000 000 +45 500 000 +20 25 30 35",
    "mobile 1080 1920 px range 250-300-3500 (200) 300-4000 handy 150000 Stück 250-300-3500 mm",
    "@@ -12345678,7 +12345678,8 @@ @@ -1,2 +44123456,8 @@ +100000000 views +12345678 $222-333-4444",
    "fax 2001 2002 2003 phone 192.168.100.200 Temperature +15 20 25 30 35 40",
    "911-555-2671 490-555-2671 tel +44 123 456 px",
    "gb82west12345698765432 de88370400440532013000 xde89370400440532013000",
    "discount 20%40 off &#64;mail.com a&#x40b.com &#64b.com",
    "DE88 3704 0044 0532 0130 00 GB82WEST12345698765433 XX82WEST12345698765432",
    "4111 1111 1111 1112 41111111111111111 9111111111111111 id=4111111111111111",
    "AKIA" + "IOSFODNN7EXAMPLE ghp_" + "a" * 36 + " xAKIA" + "IOSFODNN7ABCDEFG eyJhbGci.x.y",
    BLOCK.format("short\n") + " and -----BEGIN RSA PRIVATE" + " KEY----- of prose, and more.",
    "tokenizer = 'bert-base-uncased-v1-xyz9' password = 'your-password-here' max_tokens=4096",
    "api_key = os.environ['API_KEY_OF_SERVICE_1']",
    "token: GetAuthenticationTokenFromHeaderV2 password = getPasswordFromEnvironmentV2",
    'api_key="YOUR_API_KEY_HERE_1234" secret: "change-me-in-production-2024"',
    "secret: 'Pride-and-Prejudice-1813-Chapter' token: 'ThisIsAnExampleSentenceToken1'",
    'access_token="https://api.host.org/v1/oauth2/Token" secret: https://docs.host.org/a1b2c3d4e5',
    f"token = make{SECRET}(x) tokenizer={SECRET} token_url={SECRET}",
    "",
]


@pytest.mark.parametrize(("text", "wanted"), FOUND, ids=lambda t: t[:20])
def test_pii_found_and_masked(text, wanted):
    assert masked(text) == wanted


@pytest.mark.parametrize("text", LEFT, ids=lambda t: t[:20])
def test_pii_left_alone(text):
    assert masked(text) == text


PIECES = (
    *["a", "b", ".", ",", ":", ";", "-", "--", "+", "(", ")", "/", "@", "=", "=>", "'", '"', "`", "_", "%", "?", "#", "&", "$", "<", ">", "[", "]", "0", "1", "4", "é", "电", "话"],
    " ", "  ", "\n", "\t", "\\n", "::", "..", "//", "x@y.com", "a.b@c-d.org", "@example.com", "git@",
    ".png", "93.184.216.34", "1.2.3.4", "version ", "192.168.1.100", "2a00:1450:", "2001:db8::",
    "81b::200e", "415", "555", "2671", "(415) 555-2671", "415-555-2671", "+49 30 ", "1234567", "tel",
    "Tel. ", "phone number ", "电话", "тел", "4111 1111 1111 1111", "378282246310005", "1111",
    "DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432", "DE", AWS, GITHUB, JWT, "EXAMPLE",
    BLOCK.format(BODY), "-----BEGIN RSA PRIVATE" + " KEY-----\n", BODY, "password", "api_key", SECRET, "_prod", ": str", "\t", "Bearer ", "\n> ", "-----END ", HEXES, LINES, *KEYS,
    "aA1" * 5, "aB3dE5gH7jK9mN1pQ3sT",
    "＠", "：", "．", "１", "４１５", "\u00a0", "–", "\u202f", "٤", "рф", "почта", "中国", "用户@例子.中国", "@müller.de",
    "com", "comEng", ".co", ".Com", ".mT", "xn--p1ai", "de-", "\u0301", "\\n", "ssh ", "(work)", "[0", ":/", "+37.", "774929",
    "&uuml;", "&#64", "&#x6a", "&#228;", "%2E", "%2e", "(Tel.)", "【TEL】", "]", "*", "元", " руб", "đ", " km", "900 900 900", ",00",
    *DRAWN, '\\"', "'token': '", 'secret="', "{", "$", "|", ";", "...", "eyJ",
    "&nbsp;", "&shy;", "&#8203;", "&ndash;", "&amp;", "&lt;", "&period;", "&nbsp", ":30",
    "pH ", "ph ", "2015", "12.05.", "000", "SKU ", "order no. ",
    "—", "\u200b", "\xad", "\u202a", "&#64;", "&#x34;", "&commat;", "%40", "%3C", "&#", "هاتف", "โทร ", "px", " €",
    "de89", "gb82west", "iban ", "De89 3704 0044 0532 0130 00", "+44 ", "+12 ", "500 ", "192.168.",
)  # fmt: skip
pieces = st.lists(st.sampled_from(PIECES), max_size=14)
texts = st.one_of(pieces.map("".join), pieces.map(" ".join), st.text(max_size=60))
GROUPS = st.sampled_from(
    ["0", "1", "8", "03", "12", "17", "24", "113", "640", "900", "1404", "2569", "31", "50", "00", "000", "123", "255", "0900", "1730", "1080", "1920", "2024", "1999", "1234", "12345", "345678"]
)  # fmt: skip
MARKS = st.sampled_from(
    [
        ".",
        ".",
        "-",
        "/",
        "/",
        " ",
        " ",
        " - ",
        " / ",
        " (",
        ") ",
        ":",
        ",",
        "&nbsp;",
        " km ",
        "元",
        " đ",
    ]
)
GROUPED = st.tuples(
    st.sampled_from(["Tel. ", "Cell ", "+", "+44 ", "Хотел ", "(Tel.) ", "[tel]: "]),
    st.lists(st.tuples(GROUPS, MARKS).map("".join), min_size=1, max_size=6).map("".join),
).map("".join)
VALUES = st.one_of(  # after the name of a secret
    st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=12, max_size=40),
    st.text("aB1cD2eF3$;,{}<>|( \\", min_size=14, max_size=30),
    st.lists(
        st.sampled_from([SECRET, *DRAWN, *FILLED, " ", "$", "\\", "\\'", "||"]), max_size=3
    ).map("".join),
)
GIVEN = st.tuples(
    st.sampled_from(
        ["token='{}'", 'secret: "{}"', "password = `{}`", "api_key={}", r"token\":\"{}\""]
    ),
    VALUES,
).map(lambda pair: pair[0].replace("{}", pair[1]) + " x'")
NUMBERS = st.text("0123456789 .-+()/:@abf", max_size=70)


def found(stage: PII, data: bytes) -> list[tuple[int, int, str]]:
    batch = pa.record_batch({"text": pa.array([data], pa.large_binary())})
    e = stage.measure(batch).edits
    kinds = [e.reason_names[k] for k in e.reasons]
    return list(zip(e.starts.tolist(), e.lengths.tolist(), kinds, strict=True))


@given(
    st.one_of(
        texts.map(str.encode),
        NUMBERS.map(str.encode),
        GROUPED.map(str.encode),
        GIVEN.map(str.encode),
        st.binary(max_size=60),
    )
)
@example(b"+1 555 123 4567 93.184.216.34")
@example(b"a@b.com-415-555-2671 tel 1.2.3.4")
def test_pii_any_bytes_equal_twin(naive, data):
    twin, known = naive("naive_pii"), (_pii_tables, naive("naive_secrets"))
    assert found(PII(), data) == twin.find(data, *known)
    assert found(PII(reserved=True), data) == twin.find(data, *known, reserved=True)


@given(st.one_of(texts, NUMBERS, GROUPED, GIVEN))
def test_pii_masked_text_has_nothing_left(text):
    once = masked(text)
    assert masked(once) == once


@given(st.lists(st.one_of(st.none(), texts), max_size=6), st.data())
def test_pii_batch_slices_and_nulls_measured_row_by_row(values, data):
    whole = batch_of([None, *values, None])
    low = data.draw(st.integers(0, whole.num_rows))
    part = whole.slice(low, data.draw(st.integers(0, whole.num_rows - low)))
    made = checked_measure(PII(), part)
    for row, text in enumerate(([None, *values, None])[low : low + part.num_rows]):
        own = made.edits.rows == row
        alone = [(s, n, k) for s, n, k in found(PII(), (text or "").encode())]
        assert made.edits.starts[own].tolist() == [s for s, _, _ in alone]
        assert sum(int(v[row]) for v in made.scores.values()) == len(alone)


def test_pii_kinds_switched_off_and_other_masks():
    text = "x@y.com 93.184.216.34 415-555-2671"
    assert masked(text, PII(email=None, phone="|tel|")) == "x@y.com <IP> |tel|"
    assert masked("a@example.com 192.168.0.1", PII(reserved=True)) == "<EMAIL> <IP>"


def test_pii_counts_and_limit():
    batch = batch_of(["x@y.com z@y.com", "nothing"])
    scores = checked_measure(PII(), batch).scores
    assert scores["email"].tolist() == [2, 0]
    assert checked_verdict(PII(), scores, 2).tolist() == [0, 0]
    assert checked_verdict(PII(at_most=1), scores, 2).tolist() == [1, 0]
    empty = checked_measure(PII(at_most=1), batch.slice(0, 0))
    assert empty.edits is not None
    assert checked_verdict(PII(at_most=1), empty.scores, 0).dtype == np.uint8


@pytest.mark.parametrize(
    "fields",
    [
        {"email": "x@y.com"},
        {"ipv4": "<4111111111111111>"},
        {"card": ""},
        {"phone": "<555>\n"},
        {"at_most": -1},
        {"key": 3},
    ],
)
def test_pii_wrong_fields_are_named(fields):
    with pytest.raises(UsageError, match=f"pii.{next(iter(fields))}"):
        PII(**fields)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Tel \u2014 020 7946 0958", "Tel \u2014 <PHONE>"),
        ("Tel - 020 7946 0958", "Tel - <PHONE>"),
        ("Tel\u2014020 7946 0958", "Tel\u2014<PHONE>"),
        ("\u7535\u8bdd\u201413800138000", "\u7535\u8bdd\u2014<PHONE>"),
        ("x \u20144111111111111111", "x \u2014<CARD>"),
        ("\u20134111 1111 1111 1111", "\u2013<CARD>"),
        ("phone-1234567.jpg", None),
        ("Tel - 2015-2016", None),
        ("a-4111111111111111", None),
        ("9-4111111111111111", None),
    ],
)
def test_pii_number_behind_a_dash_masked(naive, text, wanted) -> None:
    twin, known = naive("naive_pii"), (_pii_tables, naive("naive_secrets"))
    assert masked(text) == (wanted or text)
    assert found(PII(), text.encode()) == twin.find(text.encode(), *known)
