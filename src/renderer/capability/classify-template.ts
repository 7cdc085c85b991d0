import type { BoundTemplate } from "../bound-template.ts";
import { opensReasoning } from "../continues.ts";
import type { HistoryEdits } from "./history-edits.ts";
import { countRewrites, measureHistoryEdits } from "./history-edits.ts";
import type { KeepThinking } from "./keep-thinking.ts";
import { findKeepThinking } from "./keep-thinking.ts";
import type { MeasuredDelta } from "../delta/measure-delta.ts";
import { measureDelta } from "../delta/measure-delta.ts";
import { assistantMessage, toolMessage } from "./probe-messages.ts";
import type { Prober } from "./prober.ts";
import { createProber } from "./prober.ts";
import type { ControlLiterals, StopLiterals } from "../delta/stop-literals.ts";
import { learnStopLiterals } from "../delta/stop-literals.ts";
import { missingTool } from "./missing-tool.ts";
import { measureToolShowing, type ToolShowing } from "./tool-showing.ts";
import { hiddenMessage } from "../hidden-message.ts";
import { roleOf } from "../openai-messages.ts";
import { adaptCallArguments } from "../text-arguments.ts";

/**
 * The treatment of the history if a template rewrites it.
 *
 * - `keep`: the ledger continues unchanged, so that the policy sees all that it said. The template's own variable
 * for that is set, if it has one (default).
 * - `split`: if the template drops content that was shown, a new segment starts with a fresh prompt, as when
 * serving with this template.
 * - `refuse`: such templates are refused, unless a variable prevents the rewriting.
 */
export type HistoryPolicy = "keep" | "split" | "refuse";

/** The measurements of a template. */
export interface TemplateProfile {
  /**
   * The template to use: adapted to the argument form that it takes, and with the variable that keeps reasoning if
   * it is set.
   */
  readonly template: BoundTemplate;
  readonly stops: StopLiterals;
  readonly delta: MeasuredDelta;
  /** The template's effect on the history without the variable that keeps reasoning. */
  readonly edits: HistoryEdits;
  readonly keepThinking: KeepThinking | undefined;
  /** True if `template` is bound to the variable that keeps reasoning. */
  readonly setsKeepThinking: boolean;
  /** True if a first prompt contains the tools that it is rendered with. */
  readonly showsTools: boolean;
  readonly toolShowing: ToolShowing;
  readonly opensReasoning: boolean;
  readonly warnings: readonly string[];
}

const call = { id: "call00001", name: "find_parcel", arguments: { parcel_id: "1" } };
const acting = assistantMessage({ content: "", calls: [call] });

/** Measures a template by rendering small conversations with it. */
export function classifyTemplate(
  original: BoundTemplate,
  literals: ControlLiterals,
  historyPolicy: HistoryPolicy,
): TemplateProfile {
  const adapted = adaptCallArguments(original);
  const edits = measureHistoryEdits(adapted);
  const keepThinking = findKeepThinking(adapted, edits);
  const setsKeepThinking = keepThinking !== undefined && historyPolicy !== "split";
  const template = setsKeepThinking
    ? adapted.with(new Map([[keepThinking.variable, keepThinking.value]]))
    : adapted;
  const stops = learnStopLiterals(template, literals);
  const delta = measureDelta(template, stops.closers);
  const prober = createProber(template);
  const firstPrompt = prober.show(prober.opening, true);
  const remaining = setsKeepThinking ? keepThinking.edits : edits;
  const toolShowing = measureToolShowing(prober);
  const showsTools =
    firstPrompt !== undefined && missingTool(firstPrompt, prober.tools) === undefined;
  return {
    template,
    stops,
    delta,
    edits,
    keepThinking,
    setsKeepThinking,
    showsTools,
    toolShowing,
    opensReasoning: firstPrompt !== undefined && opensReasoning(firstPrompt),
    warnings: [
      ...stopWarnings(stops),
      ...toolWarnings(prober, showsTools),
      ...systemWarnings(prober, template, firstPrompt),
      ...deltaWarnings(prober, delta),
      ...historyWarnings(remaining, historyPolicy),
      ...(setsKeepThinking ? [keepThinkingNote(keepThinking)] : []),
      ...contentWarnings(template.source, prober),
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

function toolWarnings({ tools }: Prober, showsTools: boolean): readonly string[] {
  if (tools === null) return ["The template refuses tool definitions in OpenAI's shape"];
  return showsTools
    ? []
    : ["The template does not show tool definitions: conversations with tools are refused"];
}

function systemWarnings(
  { opening: messages, tools }: Prober,
  template: BoundTemplate,
  firstPrompt: string | undefined,
): readonly string[] {
  if (firstPrompt === undefined) return [];
  const hidden = hiddenMessage(firstPrompt, template, {
    messages,
    tools,
    addGenerationPrompt: true,
  });
  if (hidden === undefined || roleOf(messages[hidden]!) !== "system") return [];
  return ["The template drops the system message: conversations with one are refused"];
}

/** A note about the variable: prompts that differ from the template's defaults must be served with it. */
function keepThinkingNote({ variable, value }: KeepThinking): string {
  return (
    `Every prompt is rendered with ${variable}=${value}, which keeps earlier reasoning: serve with ` +
    "the same, or choose the history policy `split` for the template as it is"
  );
}

function deltaWarnings(prober: Prober, { plan, supports }: MeasuredDelta): readonly string[] {
  const warnings: string[] = [];
  if (plan.closers.length > 0 && !supports.tool) {
    const messages = [...prober.opening, acting, toolMessage(call, "in transit")];
    const verb = prober.show(messages, true) === undefined ? "refuses" : "drops";
    warnings.push(`The template ${verb} tool results: give them as user messages`);
  }
  if (plan.base === "full") {
    warnings.push(
      "What follows a turn depends on the history: each turn renders the whole conversation",
    );
  }
  return warnings;
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

function contentWarnings(source: string, { opening, show }: Prober): readonly string[] {
  const warnings: string[] = [];
  if (source.includes("strftime_now")) {
    warnings.push(
      "The template prints today's date: the prompts of a run keep the day on which it began " +
        "(`promptTime` in run.json), those of a renderer of your own the `now` of createRenderer()",
    );
  }
  return [...warnings, ...turnWarnings({ opening, show })];
}

/** Warnings about turns that have text and calls. */
function turnWarnings({ opening, show }: Pick<Prober, "opening" | "show">): readonly string[] {
  const said = "saidkqz";
  const asked = "askedkqz";
  const calls = [{ ...call, arguments: { parcel_id: asked } }];
  const shown = (content: string, reasoning?: string): string | undefined =>
    show(
      [...opening, assistantMessage({ content, calls, ...(reasoning && { reasoning }) })],
      false,
    );
  const both = shown(said);
  const warnings: string[] = [];
  if (both?.includes(said) === false) {
    warnings.push(
      "The template drops the text beside a tool call from the history: the gateway gives such a text a turn of " +
        "its own if the template shows that, and counts it as `text-not-shown` if not",
    );
  }
  if (both?.includes(asked) === false && shown("")?.includes(asked) === true) {
    warnings.push(
      "The template drops tool calls beside text from the history: the gateway gives such a text a turn of its own " +
        "if the template shows the calls then, and refuses the request if not",
    );
  }
  if (shown(said, "Look.") === undefined && shown("", "Look.") !== undefined) {
    warnings.push(
      "The template refuses a turn with reasoning, text and a tool call in the history: the gateway gives such a text a " +
        "turn of its own",
    );
  }
  return warnings;
}
