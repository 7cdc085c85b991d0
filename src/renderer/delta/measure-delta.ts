import { RolloutError } from "../../errors.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";
import type { BoundTemplate } from "../bound-template.ts";
import { tryRender } from "../bound-template.ts";
import type { DeltaPlan, TurnChange } from "./environment-delta.ts";
import { renderDeltaText } from "./environment-delta.ts";
import type { ProbeCall } from "../capability/probe-messages.ts";
import {
  assistantMessage,
  systemMessage,
  toolMessage,
  userMessage,
} from "../capability/probe-messages.ts";
import type { Prober } from "../capability/prober.ts";
import { createProber } from "../capability/prober.ts";

/** The kinds of environment messages. */
export type EnvironmentKind = "system" | "user" | "tool" | "parallelTools";

/** The way to render a template's deltas, and the kinds that were correct in the trials. */
export interface MeasuredDelta {
  readonly plan: DeltaPlan;
  readonly supports: Readonly<Record<EnvironmentKind, boolean>>;
}

interface Trial extends TurnChange {
  readonly kind: EnvironmentKind;
}

const findFirst: ProbeCall = call(1, "find_parcel");
const findSecond: ProbeCall = call(2, "find_parcel");
const returnThird: ProbeCall = call(3, "return_parcel");
const bothCalls = [findSecond, returnThird];
const bothResults = [toolMessage(findSecond, "in transit"), toolMessage(returnThird, "sent back")];
const acting = assistantMessage({ content: "", calls: [findFirst] });
const result = toolMessage(findFirst, '{"state": "in transit"}\n');
const asking = assistantMessage({ content: "Which parcel?" });
const number = userMessage("Number 7, please.");
const answering = assistantMessage({ content: "On its way." });

/** Early and late turns, with and without reasoning, each with every kind of answer. */
function createTrials({ opening, tools }: Prober): readonly Trial[] {
  const searched = [...opening, acting, result];
  const later = [...searched, answering, userMessage("Send it back.")];
  const returning = assistantMessage({ content: "", calls: [returnThird] });
  const actingBoth = assistantMessage({ content: "", calls: bothCalls });
  const reasonedAsking = assistantMessage({ content: "Which one?", reasoning: "Ask." });
  const reasonedActing = assistantMessage({ content: "", reasoning: "Look.", calls: [findFirst] });
  const trial = (
    kind: EnvironmentKind,
    history: readonly PyDict[],
    assistant: PyDict,
    environment: readonly PyDict[],
  ): Trial => ({ kind, history, assistant, environment, tools });
  return [
    trial("user", opening, asking, [number]),
    trial("user", searched, answering, [userMessage("Thanks!")]),
    trial("user", opening, reasonedAsking, [number]),
    trial("tool", opening, acting, [result]),
    trial("tool", later, returning, [toolMessage(returnThird, "sent back")]),
    trial("tool", opening, reasonedActing, [result]),
    trial("tool", opening, acting, [result, userMessage("Well?")]),
    trial("parallelTools", opening, actingBoth, bothResults),
    trial("parallelTools", later, actingBoth, bothResults),
    trial("system", opening, asking, [systemMessage("The shop closes soon."), number]),
  ];
}

/** Tries deltas of every kind and compares them with renderings of complete conversations. */
export function measureDelta(template: BoundTemplate, closers: readonly string[]): MeasuredDelta {
  const trials = createTrials(createProber(template));
  const whole = { base: "full", needsTools: true, closers } as const;
  const right = trials.flatMap((change) => {
    const text = tryDelta(template, whole, change);
    return text !== undefined && isRight(template, change, text) ? [{ change, text }] : [];
  });
  const candidates: readonly DeltaPlan[] = [
    { base: "short", needsTools: false, closers },
    { base: "short", needsTools: true, closers },
    { base: "full", needsTools: false, closers },
  ];
  const plan =
    candidates.find((candidate) =>
      right.every(({ change, text }) => tryDelta(template, candidate, change) === text),
    ) ?? whole;
  const isSupported = (kind: EnvironmentKind): boolean =>
    right.some(({ change }) => change.kind === kind) &&
    trials.every(
      (change) =>
        change.kind !== kind ||
        right.some((found) => found.change === change) ||
        renderWhole(template, change) === undefined,
    );
  return {
    plan,
    supports: {
      system: isSupported("system"),
      user: isSupported("user"),
      tool: isSupported("tool"),
      parallelTools: isSupported("parallelTools"),
    },
  };
}

function tryDelta(template: BoundTemplate, plan: DeltaPlan, change: Trial): string | undefined {
  try {
    return renderDeltaText(template, plan, change);
  } catch (error) {
    if (error instanceof RolloutError) return undefined;
    throw error;
  }
}

function isRight(template: BoundTemplate, change: Trial, delta: string): boolean {
  return renderWhole(template, change)?.endsWith(delta) === true;
}

function renderWhole(
  template: BoundTemplate,
  { history, assistant, environment, tools }: Trial,
): string | undefined {
  const messages = [...history, assistant, ...environment];
  return tryRender(template, { messages, tools, addGenerationPrompt: true });
}

function call(index: number, name: string): ProbeCall {
  return { id: `call0000${index}`, name, arguments: { parcel_id: String(index) } };
}
