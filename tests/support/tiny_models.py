"""Tiny random checkpoints in the layout of the real ones, built offline: their output is noise,
how they are loaded and run is not.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

SENTENCES = (
    "the quick brown fox jumps over the lazy dog",
    "we put the eggs into the bowl and stir",
    "nobody knows what happened that night",
)


def whisper(folder: Path, *, seed: int = 0) -> Path:
    """Write a random Whisper (two layers of 64) as a CTranslate2 folder, by its own converter."""
    torch = pytest.importorskip("torch")
    from ctranslate2.converters import TransformersConverter
    from transformers import (
        GenerationConfig,
        WhisperConfig,
        WhisperFeatureExtractor,
        WhisperForConditionalGeneration,
    )

    source, target = folder / "whisper-hf", folder / "whisper-ct2"
    source.mkdir(parents=True)
    ids = _whisper_tokenizer(source)
    torch.manual_seed(seed)
    config = WhisperConfig(
        vocab_size=len(ids),
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_mel_bins=80,
        decoder_start_token_id=ids["<|startoftranscript|>"],
        bos_token_id=ids["<|endoftext|>"],
        eos_token_id=ids["<|endoftext|>"],
        pad_token_id=ids["<|endoftext|>"],
        suppress_tokens=[],
        begin_suppress_tokens=[],
    )
    model = WhisperForConditionalGeneration(config)
    words = [i for token, i in ids.items() if token.strip("Ġ").isalpha() and len(token) > 2]
    with torch.no_grad():  # Large weights for words, so that the noise consists of words.
        model.model.decoder.embed_tokens.weight[words] *= 30
    model.generation_config = GenerationConfig(
        decoder_start_token_id=config.decoder_start_token_id,
        eos_token_id=config.eos_token_id,
        pad_token_id=config.pad_token_id,
        bos_token_id=config.bos_token_id,
        alignment_heads=[[1, 0], [1, 1]],
        no_timestamps_token_id=ids["<|notimestamps|>"],
    )
    model.save_pretrained(source)
    WhisperFeatureExtractor(feature_size=80).save_pretrained(source)
    TransformersConverter(
        str(source), copy_files=["tokenizer.json", "preprocessor_config.json"]
    ).convert(str(target), quantization="int8")
    return target


def _whisper_tokenizer(folder: Path) -> dict[str, int]:
    """Write a BPE of a few words and Whisper's special tokens; return token -> id."""
    from tokenizers import AddedToken, ByteLevelBPETokenizer
    from transformers import WhisperTokenizerFast

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(SENTENCES, vocab_size=300, show_progress=False)
    trained.save_model(str(folder))
    special = [
        "<|endoftext|>",
        "<|startoftranscript|>",
        "<|en|>",
        "<|translate|>",
        "<|transcribe|>",
        "<|startoflm|>",
        "<|startofprev|>",
        "<|nospeech|>",
        "<|notimestamps|>",
        *(f"<|{i * 0.02:.2f}|>" for i in range(1501)),
    ]
    trained.add_special_tokens([AddedToken(t, special=True) for t in special])
    trained.save(str(folder / "tokenizer.json"))
    fast = WhisperTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        unk_token="<|endoftext|>",
        bos_token="<|endoftext|>",
        eos_token="<|endoftext|>",
    )
    fast.save_pretrained(folder)
    return trained.get_vocab()


def wav2vec2(folder: Path, *, seed: int = 0) -> Path:
    """Write a random character aligner (Wav2Vec2 with a CTC head)."""
    torch = pytest.importorskip("torch")
    from transformers import (
        Wav2Vec2Config,
        Wav2Vec2CTCTokenizer,
        Wav2Vec2FeatureExtractor,
        Wav2Vec2ForCTC,
        Wav2Vec2Processor,
    )

    target = folder / "wav2vec2"
    target.mkdir(parents=True)
    letters = ["<pad>", "<s>", "</s>", "<unk>", "|", *"abcdefghijklmnopqrstuvwxyz'"]
    (target / "vocab.json").write_text(json.dumps({c: i for i, c in enumerate(letters)}))
    torch.manual_seed(seed)
    config = Wav2Vec2Config(
        vocab_size=len(letters),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        conv_dim=(16,) * 7,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
        pad_token_id=0,
    )
    Wav2Vec2ForCTC(config).save_pretrained(target)
    tokenizer = Wav2Vec2CTCTokenizer(str(target / "vocab.json"))
    extractor = Wav2Vec2FeatureExtractor(return_attention_mask=True)
    Wav2Vec2Processor(feature_extractor=extractor, tokenizer=tokenizer).save_pretrained(target)
    return target


def bert(folder: Path, *, seed: int = 0, pooling: str = "mean", normalise: bool = False) -> Path:
    """Write a random BERT encoder of 48 dimensions in sentence-transformers' layout."""
    torch = pytest.importorskip("torch")
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    target = folder / f"bert-{pooling}"
    (target / "1_Pooling").mkdir(parents=True)
    trained = BertWordPieceTokenizer()
    trained.train_from_iterator(SENTENCES, vocab_size=120, show_progress=False)
    trained.save(str(target / "tokenizer.json"))
    BertTokenizerFast(tokenizer_file=str(target / "tokenizer.json")).save_pretrained(target)
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=trained.get_vocab_size(),
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=64,
        initializer_range=0.3,
    )
    BertModel(config).save_pretrained(target)
    modes = {f"pooling_mode_{m}": m.startswith(pooling) for m in ("cls_token", "mean_tokens")}
    (target / "1_Pooling/config.json").write_text(
        json.dumps({"word_embedding_dimension": 48, **modes})
    )
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {
            "idx": 1,
            "name": "1",
            "path": "1_Pooling",
            "type": "sentence_transformers.models.Pooling",
        },
    ]
    if normalise:
        kind = "sentence_transformers.models.Normalize"
        modules.append({"idx": 2, "name": "2", "path": "2_Normalize", "type": kind})
    (target / "modules.json").write_text(json.dumps(modules))
    (target / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 32}))
    return target
