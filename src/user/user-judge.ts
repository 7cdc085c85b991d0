import type { ChatMessage, ChatModel } from "./chat/chat-model.ts";
import { fillPrompt } from "./user-prompts.ts";
import type { UserPrompts } from "./user-prompts.ts";
import type { UserTurn } from "./model-conversation.ts";
import type { UserRepairChoice } from "./user-repairs.ts";
import { isRepaired } from "./user-repairs.ts";

/** The judge's model, prompts and repairs. */
export interface UserJudge {
  readonly model: ChatModel;
  readonly prompts: UserPrompts;
  readonly repair: UserRepairChoice;
}

/**
 * Asks the judge to accept or reject a draft of the user's line.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/user.py (`verify`).
 */
export async function isAccepted(
  judge: UserJudge,
  draft: string,
  { messages, ask }: { messages: readonly ChatMessage[]; ask: UserTurn["ask"] },
): Promise<boolean> {
  const content = judgePrompt(judge, judge.prompts.verify, { draft, messages });
  const answer = (await ask([{ role: "user", content }], { model: judge.model })).toLowerCase();
  return isRepaired(judge.repair, "judge-word")
    ? /^[^\p{L}]*true(?!\p{L})/u.test(answer)
    : answer.includes("true");
}

/** Fills a judge prompt with a conversation and a draft. */
export function judgePrompt(
  { repair }: UserJudge,
  template: string,
  { draft, messages }: { draft: string; messages: readonly ChatMessage[] },
): string {
  const labels = isRepaired(repair, "judge-roles") ? rightLabels : originalLabels;
  const transcript = messages.map(({ role, content }) => `${labels[role]}: ${content}`).join("\n");
  return fillPrompt(template, { transcript, response: draft });
}

/** In the simulator's memory the customer is the assistant. The original labels it as the agent. */
const originalLabels = { system: "System", user: "Customer", assistant: "Agent" } as const;
const rightLabels = { system: "System", user: "Agent", assistant: "Customer" } as const;
