import { reprString } from "../python/text/repr.ts";
import type { ChatModel } from "./chat/chat-model.ts";
import type { ModelUserOptions, UserStrategy } from "./model-conversation.ts";
import { modelUser, promptsOf, repairsOf } from "./model-conversation.ts";
import { isAccepted } from "./user-judge.ts";
import type { User } from "./user.ts";
import { isRepaired } from "./user-repairs.ts";

/** Settings of `verifyUser()`. */
interface VerifyUserOptions extends ModelUserOptions {
  /** Judges each draft. Default: the model that plays the user, as in τ-bench. */
  readonly judge?: ChatModel;
  /** Drafts of one line; the last is sent whatever the judge says. Default 3, as in τ-bench. */
  readonly maxDrafts?: number;
  /** How a draft is shown to the judge. Default: as LiteLLM prints its message object. */
  readonly printDraft?: (draft: string) => string;
}

/** A model that plays the user, each line judged and drafted again where it is rejected. */
export function verifyUser(options: VerifyUserOptions): User {
  return modelUser(verifyStrategy(options), options);
}

/**
 * A draft and a judgement at a time, until one is accepted. As in the original, rejected drafts are
 * forgotten, also the last one, which is sent nevertheless.
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
 * A message as LiteLLM prints it for a plain reply; what follows `function_call` differs between
 * its releases and between providers.
 *
 * **Source:** `str(litellm.Message(…))` of LiteLLM 1.106.2.
 */
export function printAsLiteLlm(content: string): string {
  return (
    `Message(content=${reprString(content)}, role='assistant', tool_calls=None, ` +
    "function_call=None, provider_specific_fields=None)"
  );
}
