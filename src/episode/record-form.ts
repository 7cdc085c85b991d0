import { findFormError, type TurnForm } from "../agent/turn-form.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";
import { locateTokens } from "../tokenizer/locate-tokens.ts";
import type { FormatFacts, TurnRecord } from "./episode.ts";

/**
 * What a turn's record says of its form.
 *
 * @param turn - `text` is that of all `ids`, a closing stop id's literal included.
 */
export async function recordForm(
  form: TurnForm | undefined,
  codec: TokenCodec,
  turn: { readonly ids: readonly number[]; readonly text: string },
): Promise<Pick<TurnRecord, "attempts" | "format">> {
  if (form === undefined) return {};
  const spans = form.attempts.map(({ span }) => span);
  const tokenSpans = await locateTokens(codec, turn, spans);
  const attempts = form.attempts.map((attempt, index) => ({
    ...attempt,
    tokenSpan: tokenSpans[index] ?? [0, turn.ids.length],
  }));
  const error = findFormError(attempts);
  const { leakedMarkup, thinkingMalformed } = form;
  const format: FormatFacts = {
    formatOk: error === undefined && !leakedMarkup && !thinkingMalformed,
    ...(error === undefined
      ? {}
      : {
          firstError: { status: error.status, span: error.span, tokenSpan: error.tokenSpan },
        }),
    leakedMarkup,
    thinkingMalformed,
  };
  return attempts.length === 0 ? { format } : { attempts, format };
}
