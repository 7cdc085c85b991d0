import { afterLabel } from "./after-label.ts";
import type { ChatMessage, ChatModel } from "./chat/chat-model.ts";
import type { ModelUserOptions, UserStrategy, UserTurn } from "./model-conversation.ts";
import { modelUser, promptsOf, repairsOf } from "./model-conversation.ts";
import type { UserJudge } from "./user-judge.ts";
import { isAccepted, judgePrompt } from "./user-judge.ts";
import type { User } from "./user.ts";
import { isRepaired } from "./user-repairs.ts";

/** Settings of `reflectionUser()`. */
interface ReflectionUserOptions extends ModelUserOptions {
  /**
   * The model that judges each draft and proposes a better one. Default: the model that plays the
   * user.
   */
  readonly judge?: ChatModel;
  /** Maximum number of drafts per line. Default 2, as in τ-bench. */
  readonly maxDrafts?: number;
}

/**
 * Creates a user that a model plays. A judge checks each line, and rejected ones are drafted again
 * with its advice.
 */
export function reflectionUser(options: ReflectionUserOptions): User {
  return modelUser(reflectionStrategy(options), options);
}

/**
 * The strategy of drafts and judgements. After a rejection, the judge's better line is sent to the
 * simulator in the agent's role, and it drafts again. As in the original, every draft is
 * remembered, the advice is not, and the first draft is sent if none is accepted.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/user.py (`ReflectionUserSimulationEnv`).
 */
export function reflectionStrategy(options: ReflectionUserOptions): UserStrategy {
  const { model, judge: judgeModel = model, maxDrafts = 2 } = options;
  const prompts = promptsOf(options);
  const repair = repairsOf(options);
  const judge: UserJudge = { model: judgeModel, prompts, repair };
  return {
    name: "reflection",
    systemPrompt: prompts.llm,
    async nextLine({ memory, ask }) {
      const { drafts, isLastAccepted } = await draftLines(judge, { memory, ask, maxDrafts });
      const isTidy = isRepaired(repair, "kept-drafts");
      const line = (isLastAccepted || isTidy ? drafts.at(-1) : drafts[0]) as string;
      for (const content of isTidy ? [line] : drafts) memory.push({ role: "assistant", content });
      return line;
    },
  };
}

async function draftLines(
  judge: UserJudge,
  { memory, ask, maxDrafts }: UserTurn & { readonly maxDrafts: number },
): Promise<{ drafts: readonly string[]; isLastAccepted: boolean }> {
  // A copy, because the advice is not remembered.
  const messages: ChatMessage[] = memory.slice();
  const first = await ask(messages);
  const drafts = [first];
  for (let draft = first; ;) {
    if (await isAccepted(judge, draft, { messages, ask })) return { drafts, isLastAccepted: true };
    if (drafts.length >= maxDrafts) return { drafts, isLastAccepted: false };
    messages.push({ role: "user", content: await adviseOn(judge, first, { messages, ask }) });
    draft = await ask(messages);
    drafts.push(draft);
  }
}

/**
 * Requests a better line from the judge.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/user.py (`reflect`).
 */
async function adviseOn(
  judge: UserJudge,
  draft: string,
  { messages, ask }: { messages: readonly ChatMessage[]; ask: UserTurn["ask"] },
): Promise<string> {
  const content = judgePrompt(judge, judge.prompts.reflect, { draft, messages });
  const answer = await ask([{ role: "user", content }], { model: judge.model });
  const mayRepeat = isRepaired(judge.repair, "labels");
  return afterLabel(answer, "Response:", { mayRepeat });
}
