"""Types of the options of verbs. go test ./cmd/ndls -run TestPythonOptions -rewrite makes this file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, TypedDict


class RunOptions(TypedDict, total=False):
    """The flags of ndls run with underscores, without dataset and run."""

    alpha: float | None
    batch_size: int | None
    blank_features: float | None
    block_columns: int | None
    cache: str | int | os.PathLike[str] | None
    cache_size: str | int | os.PathLike[str] | None
    choose: Literal["measure", "loss"] | None
    config: str | int | os.PathLike[str] | None
    cs_correct_alpha: float | None
    cs_correct_hops: int | None
    cs_scale: str | int | float | Sequence[str] | Sequence[float] | None
    cs_smooth_alpha: float | None
    degree_power: float | None
    depth: Literal["node"] | None
    dimensions: int | None
    direction: Literal["in", "out", "both"] | None
    directions: int | None
    disk: str | int | os.PathLike[str] | None
    drop_edges: float | None
    dropout: float | None
    epochs: int | None
    epsilon: float | None
    features: Literal["none"] | None
    fill: Literal["mean", "neighbours"] | None
    group_size: int | None
    hidden: int | None
    hidden_norm: Literal["none", "layer"] | None
    hop_weights: str | int | float | Sequence[str] | Sequence[float] | None
    hops: int | None
    http: str | int | os.PathLike[str] | None
    http_host: str | Sequence[str] | None
    inductive: bool | None
    input_dropout: float | None
    input_norm: Literal["none", "standard"] | None
    interval_blocks: int | None
    keep_features: bool | None
    keep_hops: str | int | float | Sequence[str] | Sequence[float] | None
    keep_smoothed: bool | None
    kernel: str | int | os.PathLike[str] | None
    kmax: int | None
    label_alpha: float | None
    label_columns: int | None
    label_depth: str | int | float | Sequence[str] | Sequence[float] | None
    label_epsilon: float | None
    label_kmax: int | None
    label_rule: Literal["ndls", "ndls-reference", "cs", "cs-nd"] | None
    labels_per_class: int | None
    layers: int | None
    log_level: str | int | os.PathLike[str] | None
    lr: float | None
    lsi: Literal["influence-sketch", "influence-exact", "feature", "feature-sketch"] | None
    memory: str | int | os.PathLike[str] | None
    metrics: str | int | float | Sequence[str] | Sequence[float] | None
    metrics_file: str | int | os.PathLike[str] | None
    model: Literal["mlp", "ridge"] | None
    normalize: Literal["auto", "l1", "none", "log", "quantile"] | None
    only: Literal["train", "train,valid"] | None
    parallel: str | int | os.PathLike[str] | None
    patience: int | None
    pprof: bool | None
    precision: Literal["float32", "float16"] | None
    predictions: Literal["auto", "model", "mean"] | None
    probabilities: Literal["all", "best"] | None
    probes: int | None
    quiet: bool | None
    r: float | None
    residual: float | None
    result: str | int | os.PathLike[str] | None
    resume: bool | None
    rule: Literal["ndls", "ndls-reference", "sgc", "s2gc", "gbp", "appnp", "sign", "nafs", "fastrp"] | None
    runs: int | None
    schedule: Literal["constant", "cosine"] | None
    scratch: str | int | os.PathLike[str] | None
    seed: int | None
    shards: Literal["none"] | None
    smoothed_precision: Literal["float32", "float16"] | None
    soft_labels: str | int | os.PathLike[str] | None
    sparsity: float | None
    split: str | int | float | Sequence[str] | Sequence[float] | None
    splits: int | None
    stationary: Literal["component", "global"] | None
    targets: str | int | os.PathLike[str] | None
    task: Literal["classification", "labels", "regression"] | None
    threads: int | None
    tolerance: float | None
    train_on: str | Sequence[str] | None
    weight_decay: float | None
    workers: int | None


class PlanOptions(TypedDict, total=False):
    """The flags of ndls plan with underscores, without dataset and run."""

    alpha: float | None
    batch_size: int | None
    blank_features: float | None
    block_columns: int | None
    choose: Literal["measure", "loss"] | None
    classes: int | None
    config: str | int | os.PathLike[str] | None
    cs_correct_alpha: float | None
    cs_correct_hops: int | None
    cs_scale: str | int | float | Sequence[str] | Sequence[float] | None
    cs_smooth_alpha: float | None
    degree_power: float | None
    depth: Literal["node"] | None
    dimensions: int | None
    direction: Literal["in", "out", "both"] | None
    directions: int | None
    disk: str | int | os.PathLike[str] | None
    drop_edges: float | None
    dropout: float | None
    edges: int | None
    epochs: int | None
    epsilon: float | None
    expect_hops: int | None
    features: int | Literal["none"] | None
    fill: Literal["mean", "neighbours"] | None
    group_size: int | None
    half_features: bool | None
    hidden: int | None
    hidden_norm: Literal["none", "layer"] | None
    hop_weights: str | int | float | Sequence[str] | Sequence[float] | None
    hops: int | None
    input_dropout: float | None
    input_norm: Literal["none", "standard"] | None
    interval_blocks: int | None
    keep_features: bool | None
    keep_hops: str | int | float | Sequence[str] | Sequence[float] | None
    keep_smoothed: bool | None
    kernel: str | int | os.PathLike[str] | None
    kmax: int | None
    label_alpha: float | None
    label_columns: int | None
    label_depth: str | int | float | Sequence[str] | Sequence[float] | None
    label_epsilon: float | None
    label_kmax: int | None
    label_rule: Literal["ndls", "ndls-reference", "cs", "cs-nd"] | None
    labels_per_class: int | None
    layers: int | None
    log_level: str | int | os.PathLike[str] | None
    lr: float | None
    lsi: Literal["influence-sketch", "influence-exact", "feature", "feature-sketch"] | None
    measure: bool | None
    memory: str | int | os.PathLike[str] | None
    metrics: str | int | float | Sequence[str] | Sequence[float] | None
    model: Literal["mlp", "ridge"] | None
    nodes: int | None
    normalize: Literal["auto", "l1", "none", "log", "quantile"] | None
    only: Literal["train", "train,valid"] | None
    parallel: str | int | os.PathLike[str] | None
    patience: int | None
    precision: Literal["float32", "float16"] | None
    predictions: Literal["auto", "model", "mean"] | None
    probabilities: Literal["all", "best"] | None
    probes: int | None
    quiet: bool | None
    r: float | None
    residual: float | None
    result: str | int | os.PathLike[str] | None
    rule: Literal["ndls", "ndls-reference", "sgc", "s2gc", "gbp", "appnp", "sign", "nafs", "fastrp"] | None
    runs: int | None
    schedule: Literal["constant", "cosine"] | None
    scratch: str | int | os.PathLike[str] | None
    shards: Literal["none"] | None
    smoothed_precision: Literal["float32", "float16"] | None
    sparsity: float | None
    split: str | int | float | Sequence[str] | Sequence[float] | None
    splits: int | None
    stationary: Literal["component", "global"] | None
    targets: str | int | os.PathLike[str] | None
    task: Literal["classification", "labels", "regression"] | None
    threads: int | None
    tolerance: float | None
    training: int | None
    weight_decay: float | None
    workers: int | None


class InspectOptions(TypedDict, total=False):
    """The flags of ndls inspect with underscores, without dataset and run."""

    blank_features: float | None
    config: str | int | os.PathLike[str] | None
    drop_edges: float | None
    features: Literal["none"] | None
    fill: Literal["mean", "neighbours"] | None
    interval_blocks: int | None
    kernel: str | int | os.PathLike[str] | None
    labels_per_class: int | None
    log_level: str | int | os.PathLike[str] | None
    memory: str | int | os.PathLike[str] | None
    normalize: Literal["auto", "l1", "none", "log", "quantile"] | None
    only: Literal["train", "train,valid"] | None
    quiet: bool | None
    result: str | int | os.PathLike[str] | None
    scratch: str | int | os.PathLike[str] | None
    seed: int | None
    shards: Literal["none"] | None
    split: str | int | float | Sequence[str] | Sequence[float] | None
    splits: int | None
    task: Literal["classification", "labels", "regression"] | None
    threads: int | None
