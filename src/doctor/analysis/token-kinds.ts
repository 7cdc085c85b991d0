import { findReasoningParser } from "../../../packages/tool-parsers/src/reasoning/registry.ts";
import { findToolCallParser } from "../../../packages/tool-parsers/src/registry.ts";
import { IncrementalDecoder } from "../../tokenizer/incremental-decoder.ts";
import type { TokenCodec } from "../../tokenizer/codec.ts";
import type { TurnSpan } from "../../trajectory/segment.ts";
import type { ExaminedRow } from "./row-pair.ts";

/**
 * The kinds of trained tokens. A token has the first kind that applies, in the order: first of a turn, last of a turn,
 * white space, digits, tool call, reasoning, text. Without a tokenizer there are three kinds: first, last and other
 * tokens.
 */
export const tokenKinds = [
  "other",
  "first of a turn",
  "stop",
  "white space",
  "digits",
  "tool call",
  "reasoning",
  "text",
] as const;

/** A function that returns the kind of each token of a row, as an index of `tokenKinds`. */
export type KindReader = (row: ExaminedRow) => Promise<Uint8Array>;

/** Returns the kinds that follow from the row alone. */
export const readPlainKinds: KindReader = (row) => {
  const kinds = new Uint8Array(row.tokenIds.length);
  for (const turn of row.turns) markEnds(kinds, turn);
  return Promise.resolve(kinds);
};

/** The parsers of a run, by the names in its capability card. */
export interface RunParsers {
  readonly toolCallParser?: string;
  readonly reasoningParser?: string;
  /** True if the template opens the reasoning. */
  readonly opensReasoning?: boolean;
}

/** Creates a reader that also knows the tokens' texts. */
export function createKindReader(
  codec: Pick<TokenCodec, "decode" | "tokenOf">,
  parsers: RunParsers,
): KindReader {
  const texts = new Map<number, number>();
  const textKind = async (id: number): Promise<number> => {
    let kind = texts.get(id);
    if (kind === undefined) {
      kind = kindOfText(await codec.decode([id]));
      texts.set(id, kind);
    }
    return kind;
  };
  return async (row) => {
    const kinds = new Uint8Array(row.tokenIds.length);
    for (const turn of row.turns) {
      const ids = row.tokenIds.slice(turn.start, turn.end);
      const { starts, text } = await placesOf(ids, codec);
      const spans = findSpans(text, parsers);
      for (const [index, id] of ids.entries()) {
        const own = await textKind(id);
        kinds[turn.start + index] = own !== kindOf("text") ? own : kindAt(starts[index]!, spans);
      }
      markEnds(kinds, turn);
    }
    return kinds;
  };
}

function kindOf(name: (typeof tokenKinds)[number]): number {
  return tokenKinds.indexOf(name);
}

function markEnds(kinds: Uint8Array, { start, end, finish }: TurnSpan): void {
  if (start === end) return;
  if (finish === "stop") kinds[end - 1] = kindOf("stop");
  kinds[start] = kindOf("first of a turn");
}

function kindOfText(text: string): number {
  if (/^\s+$/u.test(text)) return kindOf("white space");
  return kindOf(/^\s*\d+$/u.test(text) ? "digits" : "text");
}

/** Returns a turn's text, and the place of each id in it. */
async function placesOf(
  ids: readonly number[],
  codec: Pick<TokenCodec, "decode" | "tokenOf">,
): Promise<{ readonly starts: readonly number[]; readonly text: string }> {
  const decoder = new IncrementalDecoder(codec);
  const starts: number[] = [];
  let text = "";
  for (const id of ids) {
    starts.push(text.length);
    text += await decoder.push([id]);
  }
  return { starts, text };
}

interface TextSpan {
  readonly kind: number;
  readonly start: number;
  readonly end: number;
}

function kindAt(place: number, spans: readonly TextSpan[]): number {
  return spans.find(({ start, end }) => place >= start && place < end)?.kind ?? kindOf("text");
}

function findSpans(text: string, parsers: RunParsers): readonly TextSpan[] {
  const { toolCallParser, reasoningParser, opensReasoning = false } = parsers;
  const calls =
    toolCallParser === undefined
      ? []
      : findToolCallParser(toolCallParser).parse(text, { tools: [] }).attempts;
  const reasoning =
    reasoningParser === undefined
      ? ""
      : findReasoningParser(reasoningParser).parse(text, { forceReasoning: opensReasoning })
          .reasoning;
  const at = reasoning === "" ? -1 : text.indexOf(reasoning);
  return [
    ...calls.map(({ span: [start, end] }) => ({ kind: kindOf("tool call"), start, end })),
    ...(at < 0 ? [] : [{ kind: kindOf("reasoning"), start: at, end: at + reasoning.length }]),
  ];
}
