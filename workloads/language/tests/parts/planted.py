"""Of tools/campaigns/planted_time.py: a model of fifty layers. Of planted_loss.py: a small one that learns."""

DEEP = """data: {{path: {text}, validation_fraction: 0.1}}
model: {{name: gpt, layers: 50, heads: 2, width: 32, context: 32, dropout: 0}}
optim: {{learning_rate: 0.003, warmup_steps: 10}}
train: {{steps: {steps}, batch_size: 2, eval_batches: 1}}
engine: {{threads: 1}}
run: {{seed: {seed}}}
"""
SMALL = """data: {{path: {text}, validation_fraction: 0.1}}
model: {{name: gpt, layers: 1, heads: 2, width: 32, context: 32, dropout: 0}}
optim: {{learning_rate: 0.003, minimum_learning_rate: 0, warmup_steps: 10}}
train: {{steps: {steps}, batch_size: 8, eval_batches: 40}}
engine: {{threads: 1}}
run: {{seed: {seed}}}
"""
