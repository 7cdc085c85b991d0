import type { PyDict } from "../../../packages/python-values/src/value.ts";
import type { BoundTemplate } from "../bound-template.ts";
import type { HistoryEdit } from "./capability-card.ts";
import { continues } from "../continues.ts";
import type { ProbeCall } from "./probe-messages.ts";
import { assistantMessage, toolMessage, userMessage } from "./probe-messages.ts";
import type { Prober } from "./prober.ts";
import { createProber } from "./prober.ts";

/** A template's effects on earlier turns, by the kind of answer of the environment. */
export interface HistoryEdits {
  readonly afterTool: HistoryEdit;
  readonly afterUser: HistoryEdit;
}

/** The place of reasoning in an assistant message. `none` for templates without reasoning. */
type ReasoningPlace = "reasoning_content" | "reasoning" | "thinking" | "content" | "none";

interface Exchange {
  readonly messages: readonly PyDict[];
  /** The words of the policy's turn. */
  readonly marks: readonly string[];
}

/** Measures the effect of a template on earlier turns that contain reasoning. */
export function measureHistoryEdits(template: BoundTemplate): HistoryEdits {
  const prober = createProber(template);
  const opening: Exchange = { messages: prober.opening, marks: [] };
  const place = findReasoningPlace(template, prober);
  const acts = [act(place, 1), act(place, 2)] as const;
  const says = [say(place, 3), say(place, 4)] as const;
  return {
    afterTool: judge(template, prober, [
      [opening, acts[0]],
      [join(opening, acts[0]), acts[1]],
    ]),
    afterUser: judge(template, prober, [
      [opening, says[0]],
      [join(opening, says[0]), says[1]],
      [join(opening, acts[0]), says[0]],
    ]),
  };
}

/** Returns the amount of rewriting: 0 if the history stays append-only after both kinds of answers. */
export function countRewrites({ afterTool, afterUser }: HistoryEdits): number {
  return [afterTool, afterUser].filter((found) => found === "rewrites").length;
}

function judge(
  template: BoundTemplate,
  { tools }: Prober,
  steps: readonly (readonly [before: Exchange, turn: Exchange])[],
): HistoryEdit {
  const results = steps.map(([before, turn]) =>
    continues(template, {
      before: before.messages,
      turn: turn.messages,
      tools,
      marks: { before: before.marks, turn: turn.marks },
    }),
  );
  if (results.includes(false)) return "rewrites";
  return results[0] === undefined ? "not-renderable" : "append-only";
}

/** Finds the message field from which the template shows reasoning. */
function findReasoningPlace(template: BoundTemplate, { opening, show }: Prober): ReasoningPlace {
  const fields = ["reasoning_content", "reasoning", "thinking"] as const;
  const isShown = (place: ReasoningPlace): boolean =>
    [say(place, 1), act(place, 1)].some(({ messages: [turn], marks }) => {
      if (turn === undefined) return false;
      return show([...opening, turn], false)?.includes(marks[0] ?? "") === true;
    });
  return fields.find(isShown) ?? (template.source.includes("think") ? "content" : "none");
}

function say(place: ReasoningPlace, index: number): Exchange {
  const content = `said${index}kqz`;
  const turn = assistantMessage({ content: withReasoning(place, index, content) });
  return exchange(turn, place, index, [content], userMessage("Go on."));
}

function act(place: ReasoningPlace, index: number): Exchange {
  const argument = `argument${index}kqz`;
  const call: ProbeCall = {
    id: `call0000${index}`,
    name: "find_parcel",
    arguments: { parcel_id: argument },
  };
  const turn = assistantMessage({ content: withReasoning(place, index, ""), calls: [call] });
  return exchange(turn, place, index, [argument], toolMessage(call, "in transit"));
}

function exchange(
  turn: PyDict,
  place: ReasoningPlace,
  index: number,
  marks: readonly string[],
  reply: PyDict,
): Exchange {
  if (place === "none") return { messages: [turn, reply], marks };
  const reasoning = `thought${index}kqz`;
  const complete = place === "content" ? turn : new Map([...turn, [place, reasoning] as const]);
  return { messages: [complete, reply], marks: [reasoning, ...marks] };
}

function withReasoning(place: ReasoningPlace, index: number, content: string): string {
  return place === "content" ? `<think>\nthought${index}kqz\n</think>\n\n${content}` : content;
}

function join(left: Exchange, right: Exchange): Exchange {
  return {
    messages: [...left.messages, ...right.messages],
    marks: [...left.marks, ...right.marks],
  };
}
