import { findFormError, type TurnForm } from "../../agent/turn-form.ts";
import type { TokenCodec } from "../../tokenizer/codec.ts";
import { locateTokens } from "../../tokenizer/locate-tokens.ts";
import type { FormatFacts, TurnRecord } from "../episode.ts";

/**
 * Returns the part of a turn's record that describes its form.
 *
 * @param turn - `text` is the text of all `ids`, including the literal of a closing stop id.
 */
export function recordForm(
  form: TurnForm | undefined,
  codec: TokenCodec,
  turn: { readonly ids: readonly number[]; readonly text: string },
): RecordedForm | Promise<RecordedForm> {
  if (form === undefined) return {};
  const spans = form.attempts.map(({ span }) => span);
  const located = locateTokens(codec, turn, spans);
  return located instanceof Promise
    ? located.then((tokenSpans) => describeForm(form, tokenSpans, turn.ids.length))
    : describeForm(form, located, turn.ids.length);
}

type RecordedForm = Pick<TurnRecord, "attempts" | "format">;

/**
 * Returns the form of a turn with the ranges of its attempts in the sampled ids.
 *
 * @param tokenSpans - An attempt without one has the range of all ids.
 */
export function describeForm(
  form: TurnForm,
  tokenSpans: readonly (readonly [start: number, end: number])[],
  idCount: number,
): RecordedForm {
  const attempts = form.attempts.map((attempt, index) =>
    // `Object.assign`, because a spread followed by one more member costs ten times as much on Node 20.
    Object.assign({ ...attempt }, { tokenSpan: tokenSpans[index] ?? ([0, idCount] as const) }),
  );
  const error = findFormError(attempts);
  const { leakedMarkup, thinkingMalformed } = form;
  const format: FormatFacts = {
    formatOk: error === undefined && !leakedMarkup && !thinkingMalformed,
    ...(error !== undefined && {
      firstError: { status: error.status, span: error.span, tokenSpan: error.tokenSpan },
    }),
    leakedMarkup,
    thinkingMalformed,
  };
  return attempts.length === 0 ? { format } : { attempts, format };
}
