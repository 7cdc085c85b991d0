import { RolloutError } from "../errors.ts";
import type { PyDict } from "../python/value.ts";
import type { BoundTemplate } from "./bound-template.ts";
import { tryRender } from "./bound-template.ts";
import type { DeltaPlan, TurnChange } from "./environment-delta.ts";
import { renderDeltaText } from "./environment-delta.ts";
import type { ProbeCall } from "./probe-messages.ts";
import {
  assistantMessage,
  probeTools,
  systemMessage,
  toolMessage,
  userMessage,
} from "./probe-messages.ts";

/** The kinds of environment messages that are told apart. */
export type EnvironmentKind = "system" | "user" | "tool" | "parallelTools";

/** How the deltas of a template are to be rendered, and which were right when it was tried. */
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
const opening = [systemMessage("You deliver parcels."), userMessage("Where is my parcel?")];
const searched = [
  ...opening,
  assistantMessage({ content: "", calls: [findFirst] }),
  toolMessage(findFirst, "in transit"),
];
const later = [
  ...searched,
  assistantMessage({ content: "On its way." }),
  userMessage("Send it back."),
];
const bothCalls = [findSecond, returnThird];
const bothResults = [toolMessage(findSecond, "in transit"), toolMessage(returnThird, "sent back")];
const asked = assistantMessage({ content: "Which parcel?" });
const number = userMessage("Number 7, please.");

const trials: readonly Trial[] = [
  trial("user", opening, asked, [number]),
  trial("user", searched, assistantMessage({ content: "On its way." }), [userMessage("Thanks!")]),
  trial("user", opening, assistantMessage({ content: "Which parcel?", reasoning: "Ask." }), [
    number,
  ]),
  trial("tool", opening, assistantMessage({ content: "", calls: [findFirst] }), [
    toolMessage(findFirst, '{"state": "in transit"}'),
  ]),
  trial("tool", later, assistantMessage({ content: "", calls: [returnThird] }), [
    toolMessage(returnThird, "sent back"),
  ]),
  trial("tool", opening, assistantMessage({ content: "", reasoning: "Ask.", calls: [findFirst] }), [
    toolMessage(findFirst, "in transit"),
  ]),
  trial("parallelTools", opening, assistantMessage({ content: "", calls: bothCalls }), bothResults),
  trial("parallelTools", later, assistantMessage({ content: "", calls: bothCalls }), bothResults),
  trial("system", opening, asked, [systemMessage("The shop closes soon."), number]),
];

/** Tries deltas of every kind and compares them with renderings of whole conversations. */
export function measureDelta(template: BoundTemplate, closers: readonly string[]): MeasuredDelta {
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

function trial(
  kind: EnvironmentKind,
  history: readonly PyDict[],
  assistant: PyDict,
  environment: readonly PyDict[],
): Trial {
  return { kind, history, assistant, environment, tools: probeTools };
}
