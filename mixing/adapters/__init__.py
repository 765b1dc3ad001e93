"""The feed in the shape that a trainer's framework asks for. Each module imports its framework.

    torch        FeedDataset (any DataLoader, torchdata's StatefulDataLoader), FeedDataLoader
    huggingface  FeedItems, InOrder: a `Trainer` that reads the plan in its order
    megatron     PlanDataset: the keys of Megatron's GPTDataset, in the plan's order

Grain needs none: a `TokenFeed` is a random access source as it stands
(`grain.MapDataset.source(feed)`).
"""
