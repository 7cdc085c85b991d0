import type { PyDict, PyValue } from "../../python/value.ts";
import type { BoundTemplate } from "../bound-template.ts";
import { tryRender } from "../bound-template.ts";
import { probeTools, systemMessage, userMessage } from "./probe-messages.ts";

/** Shows small conversations to a template in the shape that it takes. */
export interface Prober {
  /** How conversations begin: with a system message, where the template takes one. */
  readonly opening: readonly PyDict[];
  /** The tools that are offered; `null` where the template refuses tools in OpenAI's shape. */
  readonly tools: readonly PyValue[] | null;
  /** What the template renders, or `undefined` where it refuses. */
  readonly show: (messages: readonly PyDict[], addGenerationPrompt: boolean) => string | undefined;
}

/** Finds out which shape of conversation a template takes. */
export function createProber(template: BoundTemplate): Prober {
  const question = userMessage("Where is my parcel?");
  const opening = [systemMessage("You deliver parcels."), question];
  const takes = (messages: readonly PyDict[], tools: readonly PyValue[] | null): boolean =>
    tryRender(template, { messages, tools, addGenerationPrompt: true }) !== undefined;
  const tools = takes([question], probeTools) || !takes([question], null) ? probeTools : null;
  return {
    opening: takes(opening, tools) ? opening : [question],
    tools,
    show: (messages, addGenerationPrompt) =>
      tryRender(template, { messages, tools, addGenerationPrompt }),
  };
}
