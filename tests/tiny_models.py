"""Models of transformers with random weights and a few words, for tests of scripts: tiny_models.py KIND DIRECTORY.

A program of its own, so that no test's process holds torch.
"""

import sys
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
    WhisperProcessor,
    WhisperTokenizerFast,
    set_seed,
)

MARKS = ["<pad>", "<s>", "</s>", "<unk>"]
WORDS = [*MARKS, "das", "haus", "ist", "klein", "the", "house", "is", "small"]
IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
ENDING = 3.0  # added to the logit of the end: random models do not end by themselves
CODER: dict[str, Any] = {"d_model": 16} | {
    f"{side}_{name}": size
    for side in ("encoder", "decoder")
    for name, size in {"layers": 1, "attention_heads": 2, "ffn_dim": 16}.items()
}


def tokenizer() -> PreTrainedTokenizerFast:
    """Words between blanks."""
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), MARKS, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=words, model_input_names=["input_ids", "attention_mask"], **names)


def seq2seq() -> tuple[Any, ...]:
    """A translator."""
    config = BartConfig(
        vocab_size=len(WORDS), max_position_embeddings=256, decoder_start_token_id=2, init_std=0.5, **CODER, **IDS
    )
    model = BartForConditionalGeneration(config)
    model.final_logits_bias[0, 2] = ENDING
    return model, tokenizer()


def causal() -> tuple[Any, ...]:
    """A language model."""
    config = GPT2Config(vocab_size=len(WORDS), n_embd=16, n_layer=1, n_head=2, initializer_range=0.5, **IDS)
    return GPT2LMHeadModel(config), tokenizer()


def speech() -> tuple[Any, ...]:
    """A recogniser."""
    marks = ["<|endoftext|>", "<|startoftranscript|>", "<|notimestamps|>"]
    vocabulary = {sign: i for i, sign in enumerate([*marks, *"abcdefghij", "Ġ"])}
    signs = WhisperTokenizerFast(vocab=vocabulary, merges=[], additional_special_tokens=marks)
    config = WhisperConfig(
        vocab_size=len(vocabulary), num_mel_bins=8, max_target_positions=24, suppress_tokens=None,
        begin_suppress_tokens=None, pad_token_id=0, bos_token_id=0, eos_token_id=0, decoder_start_token_id=1,
        init_std=0.5, **CODER,
    )  # fmt: skip
    return WhisperForConditionalGeneration(config), WhisperProcessor(WhisperFeatureExtractor(feature_size=8), signs)


if __name__ == "__main__":
    set_seed(1)
    for part in {"seq2seq": seq2seq, "causal": causal, "speech": speech}[sys.argv[1]]():
        part.save_pretrained(sys.argv[2])
