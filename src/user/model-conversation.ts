import { InvariantError, RolloutError } from "../errors.ts";
import { callThrough, type Outside } from "../outside.ts";
import { addSpending, noSpending } from "./chat/add-spending.ts";
import type { ChatMessage, ChatModel, ChatReply } from "./chat/chat-model.ts";
import { leaveOutThoughts } from "./leave-out-thoughts.ts";
import { ownUserPrompts } from "./own-user-prompts.ts";
import type { InstructedPrompt, UserPrompts } from "./user-prompts.ts";
import { defaultGreeting, fillInstruction } from "./user-prompts.ts";
import type { UserRepairChoice } from "./user-repairs.ts";
import { isRepaired } from "./user-repairs.ts";
import { hasStopMarker, readStopMarker, STOP_MARKER } from "./stop-marker.ts";
import type { User, UserSession, UserSpending } from "./user.ts";

/** Settings that all model users share. */
export interface ModelUserOptions {
  /** Plays the user. */
  readonly model: ChatModel;
  /** Default: our own words; a benchmark's come from `readUserPrompts()`. */
  readonly prompts?: UserPrompts;
  /**
   * Behaviours of the original to correct. Default: none where `prompts` are given, so that numbers
   * compare; all of them with our own words, where there is nothing to compare with.
   */
  readonly repair?: UserRepairChoice;
  /** What the agent is taken to have said first. Default `Hi! How can I help you today?`. */
  readonly greeting?: string;
  /** Absent: the server's default, as in τ-bench. */
  readonly temperature?: number;
  /** Upper bound of a line in tokens. Absent: the server's default, as in τ-bench. */
  readonly maxTokens?: number;
  /** Whether calls carry a seed made from the episode's. Not every server takes one. Default no. */
  readonly seeded?: boolean;
}

/** The number of times that the first line is asked for where it is a stop. */
const maxFirstLines = 3;

/** What a strategy works with while it finds the user's next line. */
export interface UserTurn {
  /** What the simulator remembers: it is the assistant there, and the agent is the user. */
  readonly memory: ChatMessage[];
  /** Asks the model that plays the user (or another) and returns its text. */
  readonly ask: (
    messages: readonly ChatMessage[],
    options?: { model?: ChatModel },
  ) => Promise<string>;
}

/** One way to play a user with a model. */
export interface UserStrategy {
  readonly name: string;
  readonly systemPrompt: InstructedPrompt;
  /** Finds the next line, and changes the memory so that it holds what the strategy remembers. */
  nextLine(turn: UserTurn): Promise<string>;
}

/** The prompts of a model user's options. */
export function promptsOf({ prompts = ownUserPrompts }: ModelUserOptions): UserPrompts {
  return prompts;
}

/** The repairs of a model user's options. */
export function repairsOf({ repair, prompts }: ModelUserOptions): UserRepairChoice {
  return repair ?? (prompts === undefined ? "all" : []);
}

/** A user that plays each task's instruction by a strategy. */
export function modelUser(strategy: UserStrategy, options: ModelUserOptions): User {
  return {
    strategy: strategy.name,
    repeatable: true,
    open: ({ instruction }, { seed, outside }) =>
      openModelConversation(strategy, options, {
        instruction,
        seed,
        ...(outside && { outside }),
      }),
  };
}

/**
 * One conversation by a strategy. τ-bench asks the model for one line (`react`: two) before it has
 * an instruction and throws it away; that call is not made here.
 *
 * The user leaves by writing the stop marker. The session's calls throw RolloutError
 * `user/empty-reply` for a line without text, `user/bad-reply` for one that the strategy cannot read
 * and for a first line that stays a stop, and the errors of the chat model. The memory is then as it
 * was before.
 */
export function openModelConversation(
  strategy: UserStrategy,
  options: ModelUserOptions,
  about: {
    readonly instruction: string | null;
    readonly seed: number;
    /** Default `callThrough`. */
    readonly outside?: Outside;
  },
): UserSession {
  const { instruction, seed, outside = callThrough } = about;
  const { greeting = defaultGreeting } = options;
  const calls = countedCalls(options, { seed, outside });
  const memory: ChatMessage[] = [
    { role: "system", content: fillInstruction(strategy.systemPrompt, instruction) },
  ];
  const repair = repairsOf(options);
  /** The messages that the first line answers. */
  let opening: readonly ChatMessage[] | undefined;
  /** The messages that the last line answers. */
  let beforeLine: readonly ChatMessage[] | undefined;

  async function takeLine(signal: AbortSignal): Promise<string> {
    const line = await strategy.nextLine({
      memory,
      ask: (messages, { model = options.model } = {}) => calls.ask(messages, { model, signal }),
    });
    if (line.trim() !== "") return line;
    throw new RolloutError(
      "user/empty-reply",
      `Cannot take the user's line: ${strategy.name} made it empty, expected text`,
      { retryable: true },
    );
  }

  async function takeLineAfter(
    start: readonly ChatMessage[],
    signal: AbortSignal,
  ): Promise<string> {
    memory.splice(0, memory.length, ...start);
    return await takeLine(signal);
  }

  /** A conversation cannot end before it has begun: a stop is asked for again. */
  async function takeFirstLine(start: readonly ChatMessage[], signal: AbortSignal) {
    for (let attempt = 1; attempt <= maxFirstLines; attempt++) {
      const line = await takeLineAfter(start, signal);
      if (!hasStopMarker(line, repair)) return line;
    }
    throw new RolloutError(
      "user/bad-reply",
      `Cannot take the user's first line: ${strategy.name} wrote the stop marker ${STOP_MARKER} ` +
        `${maxFirstLines} times, expected what the user wants; check the instruction and the model`,
      { retryable: true },
    );
  }

  async function sayAfter(start: readonly ChatMessage[], signal: AbortSignal): Promise<string> {
    const saved = memory.slice();
    const mayNotStop = start === opening && isRepaired(repair, "first-line-stop");
    try {
      const line = await (mayNotStop ? takeFirstLine : takeLineAfter)(start, signal);
      beforeLine = start;
      return line;
    } catch (error) {
      memory.splice(0, memory.length, ...saved);
      throw error;
    }
  }

  return {
    begin: async ({ signal }) => {
      opening = [...memory, { role: "user", content: greeting }];
      return await sayAfter(opening, signal);
    },
    reply: async (content, { signal }) =>
      readStopMarker(await sayAfter([...memory, { role: "user", content }], signal), repair),
    retake: async ({ signal }) => {
      if (beforeLine === undefined) throw new InvariantError("retake() needs a line that was said");
      return readStopMarker(await sayAfter(beforeLine, signal), repair);
    },
    usage: () => calls.usage(),
  };
}

/** Asks models on behalf of one conversation and adds up what that takes. */
function countedCalls(
  options: ModelUserOptions,
  { seed, outside }: { readonly seed: number; readonly outside: Outside },
) {
  const { temperature, maxTokens, seeded = false } = options;
  const repair = repairsOf(options);
  let usage: UserSpending = noSpending;
  let askedCount = 0;
  return {
    usage: () => usage,
    async ask(
      messages: readonly ChatMessage[],
      { model, signal }: { model: ChatModel; signal: AbortSignal },
    ): Promise<string> {
      const callSeed = (seed + askedCount) % 2 ** 31;
      askedCount += 1;
      const request = {
        messages: messages.slice(),
        ...(temperature !== undefined && { temperature }),
        ...(maxTokens !== undefined && { maxTokens }),
        ...(seeded && { seed: callSeed }),
      };
      const reply = await outside(
        `chat ${model.name}`,
        async () => await model.complete(request, { signal }),
      );
      usage = addSpending(usage, spendingOf(reply));
      return readText(reply, { model, repair });
    },
  };
}

function spendingOf({ inputTokenCount, outputTokenCount, costUsd }: ChatReply): UserSpending {
  const cost = costUsd === undefined ? {} : { costUsd };
  return { callCount: 1, inputTokenCount, outputTokenCount, ...cost };
}

function readText(
  { text, finishReason }: ChatReply,
  { model, repair }: { model: ChatModel; repair: UserRepairChoice },
): string {
  if (finishReason === "length" && isRepaired(repair, "cut-line")) {
    throw new RolloutError(
      "user/bad-reply",
      `Cannot use the reply of ${model.name}: it is cut at its token limit, expected a whole line`,
      { retryable: true },
    );
  }
  return isRepaired(repair, "think-block") ? leaveOutThoughts(text) : text;
}
