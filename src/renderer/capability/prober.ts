import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import type { BoundTemplate } from "../bound-template.ts";
import { tryRender } from "../bound-template.ts";
import { probeTools, systemMessage, userMessage } from "./probe-messages.ts";

/** Renders small conversations in the form that a template takes. */
export interface Prober {
  /** The first messages of conversations: a system message, if the template takes one. */
  readonly opening: readonly PyDict[];
  /** The offered tools. `null` if the template refuses tools in OpenAI's shape. */
  readonly tools: readonly PyValue[] | null;
  /** Renders messages. Returns `undefined` if the template refuses them. */
  readonly show: (messages: readonly PyDict[], addGenerationPrompt: boolean) => string | undefined;
}

/** Determines the form of conversation that a template takes. */
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
