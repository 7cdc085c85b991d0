import type { BoundTemplate } from "./bound-template.ts";
import { tryRender } from "./bound-template.ts";
import { opensReasoning } from "./continues.ts";
import type { HistoryEdits } from "./history-edits.ts";
import { countRewrites, measureHistoryEdits } from "./history-edits.ts";
import type { KeepThinking } from "./keep-thinking.ts";
import { findKeepThinking } from "./keep-thinking.ts";
import type { MeasuredDelta } from "./measure-delta.ts";
import { measureDelta } from "./measure-delta.ts";
import { assistantMessage, probeTools, toolMessage, userMessage } from "./probe-messages.ts";
import type { ControlLiterals, StopLiterals } from "./stop-literals.ts";
import { learnStopLiterals } from "./stop-literals.ts";
import { adaptCallArguments } from "./text-arguments.ts";

/**
 * What becomes of the history when a template rewrites it.
 *
 * - `keep`: the ledger goes on as it is, so that the policy sees all that it said. The template's
 *   own variable for that is set where there is one (default).
 * - `split`: where the template drops something that was shown, a new segment starts from a fresh
 *   prompt, as it would when serving with this template.
 * - `refuse`: such templates are not accepted, unless a variable keeps them from rewriting.
 */
export type HistoryPolicy = "keep" | "split" | "refuse";

/** What was measured of a template. */
export interface TemplateProfile {
  /**
   * The template as it is to be used: handed arguments in the shape that it takes, and with the
   * variable that keeps reasoning where one is set.
   */
  readonly template: BoundTemplate;
  readonly stops: StopLiterals;
  readonly delta: MeasuredDelta;
  /** What the template does to the history without the variable that keeps reasoning. */
  readonly edits: HistoryEdits;
  readonly keepThinking: KeepThinking | undefined;
  readonly opensReasoning: boolean;
  readonly warnings: readonly string[];
}

/** Measures a template by rendering small conversations with it. */
export function classifyTemplate(
  original: BoundTemplate,
  literals: ControlLiterals,
  historyPolicy: HistoryPolicy,
): TemplateProfile {
  const adapted = adaptCallArguments(original);
  const edits = measureHistoryEdits(adapted);
  const keepThinking = findKeepThinking(adapted, edits);
  const template =
    keepThinking === undefined || historyPolicy === "split"
      ? adapted
      : adapted.with(new Map([[keepThinking.variable, keepThinking.value]]));
  const stops = learnStopLiterals(template, literals);
  const delta = measureDelta(template, stops.closers);
  const firstPrompt = tryRender(template, {
    messages: [userMessage("x")],
    tools: null,
    addGenerationPrompt: true,
  });
  const remaining = template === adapted ? edits : (keepThinking?.edits ?? edits);
  return {
    template,
    stops,
    delta,
    edits,
    keepThinking,
    opensReasoning: firstPrompt !== undefined && opensReasoning(firstPrompt),
    warnings: [
      ...stopWarnings(stops),
      ...deltaWarnings(template, delta),
      ...historyWarnings(remaining, historyPolicy),
      ...contentWarnings(template),
    ],
  };
}

function stopWarnings({ closers, openers }: StopLiterals): readonly string[] {
  if (closers.length === 0) {
    return ["No control token ends an assistant turn in this template: deltas are refused"];
  }
  if (openers.length === 0) return [];
  return [
    `The stop tokens ${openers.join(" ")} open the next turn: where the environment answers with ` +
      "another kind of message than the policy announced, the sampled one is dropped from the ledger",
  ];
}

function deltaWarnings(
  template: BoundTemplate,
  { plan, supports }: MeasuredDelta,
): readonly string[] {
  const warnings: string[] = [];
  if (plan.closers.length > 0 && !supports.tool) {
    warnings.push(
      rendersToolResults(template)
        ? "The template drops tool results: give them as user messages"
        : "The template refuses tool results: give them as user messages",
    );
  }
  if (plan.base === "full") {
    warnings.push(
      "What follows a turn depends on the history: each turn renders the whole conversation",
    );
  }
  return warnings;
}

function rendersToolResults(template: BoundTemplate): boolean {
  const call = { id: "call00001", name: "find_parcel", arguments: { parcel_id: "1" } };
  const messages = [
    userMessage("x"),
    assistantMessage({ content: "", calls: [call] }),
    toolMessage(call, "in transit"),
  ];
  return (
    tryRender(template, { messages, tools: probeTools, addGenerationPrompt: true }) !== undefined
  );
}

function historyWarnings(edits: HistoryEdits, policy: HistoryPolicy): readonly string[] {
  if (countRewrites(edits) === 0 || policy !== "keep") return [];
  const when = [
    ...(edits.afterTool === "rewrites" ? ["tool results"] : []),
    ...(edits.afterUser === "rewrites" ? ["user messages"] : []),
  ];
  return [
    `The template rewrites earlier turns after ${when.join(" and ")}; the ledger keeps them, so ` +
      "serving with this template shows the policy less than it was trained on",
  ];
}

function contentWarnings(template: BoundTemplate): readonly string[] {
  const warnings: string[] = [];
  if (template.source.includes("strftime_now")) {
    warnings.push("The template prints today's date: set `now` for prompts that do not change");
  }
  const call = { id: "call00001", name: "find_parcel", arguments: { parcel_id: "1" } };
  const spoken = tryRender(template, {
    messages: [userMessage("x"), assistantMessage({ content: "saidkqz", calls: [call] })],
    tools: probeTools,
    addGenerationPrompt: false,
  });
  if (spoken?.includes("saidkqz") === false) {
    warnings.push("The template drops what is said beside a tool call from the history");
  }
  return warnings;
}
