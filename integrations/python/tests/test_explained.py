"""Failures of other libraries at loading, in words."""

import pytest

from turnwright.adapters.explained import explained, unknown_name
from turnwright.environments import BadEnvironment


def raising(error, cause=None, handled=None):
    def work():
        if handled is None:
            raise error from cause
        try:
            raise handled
        except Exception:
            raise error

    return work


WORDS = "\n****\n  Resource \x1b[93mwords\x1b[0m not found.\n  Please use the NLTK Downloader"


@pytest.mark.parametrize(("error", "reason"), [
    (LookupError(WORDS), "hangman could not load its data (nltk's words): run `python -m nltk.downloader words` where there is network"),
    (LookupError("\n  Resource 'words' not found.\n"),
     "hangman could not load its data (nltk's words): run `python -m nltk.downloader words` where there is network"),
    (ValueError("OpenRouter API key not found. Please set the OPENROUTER_API_KEY environment variable."),
     "hangman has no key: set OPENROUTER_API_KEY"),
    (ConnectionError("no route"), "hangman could not load its data (ConnectionError: no route): fetch its data set where there is network"),
    (ConnectionError("Couldn't reach 'openai/gsm8k' on the Hub"),
     "hangman could not load its data (ConnectionError: Couldn't reach 'openai/gsm8k' on the Hub): "
     "fetch openai/gsm8k where there is network"),
])
def test_an_outage_or_a_missing_key_is_refused_with_what_to_do(error, reason):
    for work in (raising(error), raising(RuntimeError("it failed"), cause=error)):
        with pytest.raises(BadEnvironment) as caught:
            explained("hangman", work)
        assert str(caught.value) == reason


def test_a_missing_package_is_named_also_if_the_library_hides_it():
    hidden = raising(ImportError("Could not import it"), handled=ModuleNotFoundError("no numpy", name="numpy"))
    with pytest.raises(ModuleNotFoundError) as caught:
        explained("sokoban", hidden)
    assert caught.value.name == "numpy"


def test_another_error_comes_without_the_wrapper():
    with pytest.raises(KeyError):
        explained("chess", raising(RuntimeError("it failed"), cause=KeyError("board")))
    with pytest.raises(BadEnvironment, match="as it is"):
        explained("chess", raising(BadEnvironment("as it is"), cause=KeyError("board")))


def test_an_unknown_name_has_those_that_are_like_it():
    assert str(unknown_name("gem", "GuesNumber", ["GuessNumber", "Chess"])) == (
        "gem has no environment GuesNumber, did you mean GuessNumber?")
    assert str(unknown_name("gem", "xyz", ["Chess"])) == "gem has no environment xyz"


def test_a_judge_without_a_key_is_named_also_if_the_library_repeats_the_text():
    class OpenAIError(Exception):
        pass

    text = "Missing credentials. Please pass an `api_key`, or set the `OPENAI_API_KEY` environment variable."
    with pytest.raises(BadEnvironment) as caught:
        explained("essay", raising(RuntimeError(f"it failed: {text}"), cause=OpenAIError(text)))
    assert str(caught.value) == "essay scores by a judge and has no key for it: set OPENAI_API_KEY"
