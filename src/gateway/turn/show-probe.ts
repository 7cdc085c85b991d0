import { RolloutError, UsageError } from "../../errors.ts";
import { toolFromOpenAi, type Message, type ToolDefinition } from "../../message.ts";
import { toPyValue } from "../../../packages/python-values/src/value.ts";
import type { Renderer } from "../../renderer/renderer.ts";

/** Renders the messages after a user's first line. Returns `undefined` if the template refuses them. */
export type ShowProbe = (messages: readonly Message[]) => Promise<string | undefined>;

/** Returns a function that renders probe conversations. */
export function createProbe(renderer: Renderer): ShowProbe {
  return async (messages) => {
    // Some templates refuse conversations with tools; others refuse calls without them.
    for (const tools of [probeTools, []]) {
      try {
        const { text } = await renderer.prompt({ messages: [greeting, ...messages], tools });
        return text;
      } catch (error) {
        if (error instanceof UsageError) continue;
        if (error instanceof RolloutError && error.code !== "internal/tokenizer") continue;
        throw error;
      }
    }
    return undefined;
  };
}

const greeting: Message = { role: "user", content: "Hi" };

const probeTools: readonly ToolDefinition[] = ["probe_alpha", "probe_beta"].map((name) =>
  toolFromOpenAi(
    toPyValue({
      type: "function",
      function: {
        name,
        description: "Probes.",
        parameters: { type: "object", properties: { n: { type: "string" } } },
      },
    }),
    name,
  ),
);
