import type { ModelUserOptions, UserStrategy } from "./model-conversation.ts";
import { modelUser, promptsOf } from "./model-conversation.ts";
import type { User } from "./user.ts";

/** Creates a user that a model plays with one call a line. */
export function llmUser(options: ModelUserOptions): User {
  return modelUser(llmStrategy(options), options);
}

/**
 * The strategy of one call a line. The reply is the line.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/user.py (`LLMUserSimulationEnv`).
 */
export function llmStrategy(options: ModelUserOptions): UserStrategy {
  return {
    name: "llm",
    systemPrompt: promptsOf(options).llm,
    async nextLine({ memory, ask }) {
      const content = await ask(memory);
      memory.push({ role: "assistant", content });
      return content;
    },
  };
}
