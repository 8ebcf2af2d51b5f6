"""Of tools/campaigns/monitoring.py: a model of a text on all processors, whose steps take some 20 ms."""

JOBS = [["configs/gpt-shakespeare-cpu.yaml", "data.path={text}", "train.eval_interval=0", "train.eval_batches=1",
         "train.checkpoint_interval=0", "train.sample_characters=0"]]
