"""Of tools/campaigns/tuned.py: two small models of a text."""

JOBS = {
    "gpt-shakespeare-cpu": ["configs/gpt-shakespeare-cpu.yaml", "data.path={text}", "train.eval_batches=10"],
    "llama-shakespeare-cpu": ["configs/llama-shakespeare-cpu.yaml", "data.path={text}", "train.eval_batches=10"],
}
