import { RolloutError } from "../errors.ts";
import { safeCutIndex } from "../secrets/redactor.ts";
import type { ChatModel, ChatReply } from "../user/chat/chat-model.ts";
import {
  faultParties,
  faultTypes,
  type Fault,
  type FaultParty,
  type FaultType,
  type JudgeUsage,
} from "./fault.ts";

const opening =
  "You review conversations in which an agent serves a user with tools, and which did not reach " +
  "what was wanted. Something went wrong; you say what.";

const partyQuestion =
  "Who is to blame?\n" +
  "- user: they said or asked for something that their instruction does not support, and that led " +
  "the agent astray.\n" +
  "- agent: they did something that was not right, left out something that was needed, or used wrong " +
  "arguments.\n" +
  "- environment: neither of them; a tool or the task itself is at fault.";

const typeQuestion =
  "The agent is to blame. What was the first thing that went wrong?\n" +
  "- called_wrong_tool: the agent called a tool that was not the right one.\n" +
  "- used_wrong_tool_argument: the agent called the right tool with a wrong argument.\n" +
  "- goal_partially_completed: what the agent did was right as far as it went, but part of the goal " +
  "was left undone.\n" +
  "- other: none of these.";

/** The largest number of answers to request if they cannot be read. */
const maxAnswers = 2;

/**
 * Asks a judge which party caused an episode's failure and, if it was the agent, for the kind of
 * error.
 * **Source:** sierra-research/tau-bench, auto_error_identification.py (the two questions and the
 * possible answers; the wording is our own).
 * @throws RolloutError of party `grader`; `grader/bad-reply` if the answers cannot be read.
 */
export async function findFault(
  context: string,
  { judge, usage, signal }: { judge: ChatModel; usage: UsageMeter; signal: AbortSignal },
): Promise<Fault> {
  const asking = { judge, usage, signal, context };
  const { choice: party, reason } = await ask(partyQuestion, faultParties, asking);
  if (party !== "agent") return { party: party satisfies FaultParty, reason };
  const answer = await ask(typeQuestion, faultTypes, asking);
  return { party, reason, type: answer.choice satisfies FaultType, typeReason: answer.reason };
}

/** Sums up the usage of a judge's calls. */
export class UsageMeter {
  #usage: JudgeUsage = { callCount: 0, inputTokenCount: 0, outputTokenCount: 0 };

  add({ inputTokenCount, outputTokenCount, costUsd }: ChatReply): void {
    const before = this.#usage;
    this.#usage = {
      callCount: before.callCount + 1,
      inputTokenCount: before.inputTokenCount + inputTokenCount,
      outputTokenCount: before.outputTokenCount + outputTokenCount,
      ...((costUsd !== undefined || before.costUsd !== undefined) && {
        costUsd: (before.costUsd ?? 0) + (costUsd ?? 0),
      }),
    };
  }

  get usage(): JudgeUsage {
    return this.#usage;
  }
}

async function ask<Choice extends string>(
  question: string,
  choices: readonly Choice[],
  {
    judge,
    usage,
    signal,
    context,
  }: {
    readonly judge: ChatModel;
    readonly usage: UsageMeter;
    readonly signal: AbortSignal;
    readonly context: string;
  },
): Promise<{ readonly choice: Choice; readonly reason: string }> {
  const form =
    `Answer with one line of JSON and nothing else: {"answer": one of ${choices.join(", ")}, ` +
    '"reason": one or two sentences on what differs from what was wanted}';
  const messages = [
    { role: "system", content: opening },
    { role: "user", content: `${context}\n\n## Question\n\n${question}\n\n${form}` },
  ] as const;
  let last = "";
  for (let attempt = 0; attempt < maxAnswers; attempt++) {
    const reply = await judge.complete(
      { messages, temperature: attempt === 0 ? 0 : 1 },
      { signal },
    );
    usage.add(reply);
    const answer = readAnswer(reply.text, choices);
    if (answer !== undefined) return answer;
    last = reply.text;
  }
  throw new RolloutError(
    "grader/bad-reply",
    `Cannot read the judge's answer ${JSON.stringify(last.slice(0, safeCutIndex(last, 200)))}: expected JSON with ` +
      `"answer" one of ${choices.join(", ")}`,
  );
}

/**
 * Returns the answer in the last JSON object that has a valid one, because judges may think aloud
 * and use code fences. Also accepts a text that is only the answer.
 */
export function readAnswer<Choice extends string>(
  text: string,
  choices: readonly Choice[],
): { readonly choice: Choice; readonly reason: string } | undefined {
  const find = (answer: unknown) =>
    choices.find((candidate) => candidate === String(answer).trim().toLowerCase());
  for (const start of Array.from(text.matchAll(/\{/g), ({ index }) => index).toReversed()) {
    const { answer, reason } = parseObject(text.slice(start));
    const choice = find(answer);
    if (choice !== undefined) return { choice, reason: typeof reason === "string" ? reason : "" };
  }
  const bare = find(text);
  return bare === undefined ? undefined : { choice: bare, reason: "" };
}

/**
 * Returns the JSON object at the beginning of the text, and ignores the rest. Empty if there is
 * none.
 */
function parseObject(text: string): { readonly answer?: unknown; readonly reason?: unknown } {
  for (const { index } of text.matchAll(/\}/g)) {
    try {
      return JSON.parse(text.slice(0, index + 1)) as { answer?: unknown; reason?: unknown };
    } catch {
      // This brace is inside a string: the object ends at a later one.
    }
  }
  return {};
}
