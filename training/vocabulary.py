"""Builds the policy's own byte-pair vocabulary from training conversations."""

from itertools import product

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

CONTROL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
# As in the Qwen family, these are matched as a whole but are ordinary text to a decoder.
MARKER_TOKENS = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]

# A space belongs to the word after it, but not to the number after it. Runs of JSON punctuation
# (`", "`, `": {"`) become single tokens.
SPLIT = (
    r"[ _]?\p{Ll}+| ?\p{Lu}\p{Ll}*|\p{N}{1,3}"
    r"|[^\s\p{L}\p{N}]+(?: [^\s\p{L}\p{N}]+)*|\s+|\p{L}+"
)

# How often the vocabulary's builder reads every number and syllable, so that it leaves none out.
REPEATS = 500


def pieces_of_names():
    """All numbers of up to three digits and all syllables of storefront's names.

    Each becomes one token. Few of them occur twice in a conversation, so what follows one in a copy
    is what followed it before, and names never seen are made of tokens that were.
    """
    numbers = [f"{number:0{width}}" for width in (1, 2, 3) for number in range(10**width)]
    syllables = ["".join(letters) for letters in product("bdfghjklmnprstvw", "aeiou", "lnrs")]
    heads = [syllable.capitalize() for syllable in syllables]
    return " ".join(numbers + heads) + "".join(f"\n{piece}" for piece in syllables + heads)


def build_tokenizer(texts, vocabulary_size):
    """Trains a byte-level tokenizer that decodes to exactly the text it was given."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    texts = texts + [pieces_of_names()] * REPEATS
    added = [AddedToken(text, special=True, normalized=False) for text in CONTROL_TOKENS]
    added += [AddedToken(text, special=False, normalized=False) for text in MARKER_TOKENS]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size - len(added),
        min_frequency=2,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens(added)
    return tokenizer
