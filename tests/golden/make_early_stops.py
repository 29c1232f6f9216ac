#!/usr/bin/env python3
"""Where EarlyStoppingCallback and load_best_model_at_end of transformers end a run on sequences of held-out losses, and which
evaluation is the best, for tests/task/test_early_stop.c.

usage: make_early_stops.py >early_stops.json     (transformers 5.23.0, torch; the seed is fixed)
"""
import json
import random
import types

from transformers import EarlyStoppingCallback, Trainer, TrainerControl, TrainerState


def run(losses, patience, delta):
    """The evaluation behind which the run ends, 0 if it does not, and the number of the best."""
    args = types.SimpleNamespace(metric_for_best_model="eval_loss", greater_is_better=False, save_strategy="steps")
    trainer = types.SimpleNamespace(args=args, state=TrainerState())
    callback, control = EarlyStoppingCallback(patience, delta), TrainerControl()
    best = 0
    for i, loss in enumerate(losses, 1):
        callback.on_evaluate(args, trainer.state, control, {"eval_loss": loss})
        if Trainer._determine_best_metric(trainer, {"eval_loss": loss}, None):
            best = i
        if control.should_training_stop:
            return i, best
    return 0, best


def main():
    random.seed(5)
    cases = []
    for k in range(60):
        patience, delta = random.choice([1, 2, 3, 4]), random.choice([0, 0, 0.25, 0.5])
        level, losses = 4.0, []
        for _ in range(12):
            level = max(0, level + random.choice([-1, -0.5, -0.25, -0.125, 0, 0.25, 0.5]))
            losses.append(level)
        ends, best = run(losses, patience, delta)
        cases.append({"patience": patience, "delta": delta, "losses": losses, "ends": ends, "best": best})
    print("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]")


main()
