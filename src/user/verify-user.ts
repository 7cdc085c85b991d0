import { reprString } from "../../packages/python-values/src/text/repr.ts";
import type { ChatModel } from "./chat/chat-model.ts";
import type { ModelUserOptions, UserStrategy } from "./model-conversation.ts";
import { modelUser, promptsOf, repairsOf } from "./model-conversation.ts";
import { isAccepted } from "./user-judge.ts";
import type { User } from "./user.ts";
import { isRepaired } from "./user-repairs.ts";

/** Settings of `verifyUser()`. */
interface VerifyUserOptions extends ModelUserOptions {
  /** The model that judges each draft. Default: the model that plays the user, as in τ-bench. */
  readonly judge?: ChatModel;
  /**
   * Maximum number of drafts per line. The last one is sent even if it is rejected. Default 3, as
   * in τ-bench.
   */
  readonly maxDrafts?: number;
  /** Formats a draft for the judge. Default: as LiteLLM prints its message object. */
  readonly printDraft?: (draft: string) => string;
}

/**
 * Creates a user that a model plays. A judge checks each line, and rejected ones are drafted again.
 */
export function verifyUser(options: VerifyUserOptions): User {
  return modelUser(verifyStrategy(options), options);
}

/**
 * The strategy of drafts and judgements until one is accepted. As in the original, rejected drafts
 * are not remembered, including the last one, which is sent anyway.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/user.py (`VerifyUserSimulationEnv`).
 */
export function verifyStrategy(options: VerifyUserOptions): UserStrategy {
  const { model, judge: judgeModel = model, maxDrafts = 3 } = options;
  const { printDraft = printAsLiteLlm } = options;
  const prompts = promptsOf(options);
  const repair = repairsOf(options);
  const judge = { model: judgeModel, prompts, repair };
  const isTextShown = isRepaired(repair, "draft-object");
  return {
    name: "verify",
    systemPrompt: prompts.llm,
    async nextLine({ memory, ask }) {
      for (let draftCount = 1; ; draftCount++) {
        const content = await ask(memory);
        const shown = isTextShown ? content : printDraft(content);
        const accepted = await isAccepted(judge, shown, { messages: memory, ask });
        const isSent = accepted || draftCount >= maxDrafts;
        if (accepted || (isSent && isRepaired(repair, "forgotten-line"))) {
          memory.push({ role: "assistant", content });
        }
        if (isSent) return content;
      }
    },
  };
}

/**
 * Formats a message as LiteLLM prints a plain reply. The part after `function_call` differs between
 * its releases and providers.
 *
 * **Source:** `str(litellm.Message(…))` of LiteLLM 1.106.2.
 */
function printAsLiteLlm(content: string): string {
  return (
    `Message(content=${reprString(content)}, role='assistant', tool_calls=None, ` +
    "function_call=None, provider_specific_fields=None)"
  );
}
