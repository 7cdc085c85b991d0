import type { ChatUsage } from "./chat-budget.ts";
import type { ChatFinishReason, ChatMessage, ChatRequest } from "./chat-model.ts";

/**
 * A model of the AI SDK, as its providers make them: what versions 2 and 3 of their interface have in
 * common, as far as it is used here.
 */
export interface AiSdkLanguageModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  doGenerate(call: LanguageModelCall): PromiseLike<LanguageModelResult>;
}

/** What such a model is asked. */
export interface LanguageModelCall {
  prompt: PromptMessage[];
  temperature?: number;
  maxOutputTokens?: number;
  seed?: number;
  abortSignal?: AbortSignal;
}

/** What it answers. */
export interface LanguageModelResult {
  content: readonly { readonly type: string }[];
  finishReason: string | { readonly unified: string };
  usage: ReportedUsage;
}

/** What an AI SDK model answered, in our words. */
export interface LanguageModelAnswer {
  /** The text parts joined; reasoning and tool calls are left out. */
  readonly text: string;
  /** The content of a reply without text. */
  readonly instead?: "reasoning" | "refusal";
  readonly finishReason: ChatFinishReason;
  /** `null` where the server reports none. */
  readonly usage: ChatUsage | null;
}

/**
 * Calls an AI SDK model once, past the SDK's own loop, retries and telemetry.
 *
 * @throws whatever the model throws; see `classifyChatError()`.
 */
export async function callLanguageModel(
  model: AiSdkLanguageModel,
  request: ChatRequest,
  { signal }: { signal: AbortSignal },
): Promise<LanguageModelAnswer> {
  const { messages, temperature, maxTokens, seed } = request;
  const result = await model.doGenerate({
    prompt: messages.map(toPromptMessage),
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
    ...(seed !== undefined && { seed }),
    abortSignal: signal,
  });
  const text = result.content.map(textOf).join("");
  const isReasoning = text === "" && result.content.some(({ type }) => type === "reasoning");
  return {
    text,
    ...(isReasoning && { instead: "reasoning" }),
    finishReason: toFinishReason(result.finishReason),
    usage: toUsage(result.usage),
  };
}

function textOf(part: { readonly type: string }): string {
  return part.type === "text" && "text" in part ? String(part.text) : "";
}

/** What versions 2 and 3 of the model interface have in common. */
export type PromptMessage =
  | { role: "system"; content: string }
  | { role: "user"; content: { type: "text"; text: string }[] }
  | { role: "assistant"; content: { type: "text"; text: string }[] };

function toPromptMessage({ role, content }: ChatMessage): PromptMessage {
  if (role === "system") return { role, content };
  return { role, content: [{ type: "text", text: content }] };
}

/** Version 2 models give a word, version 3 models a word with the server's own beside it. */
function toFinishReason(reason: string | { readonly unified: string }): ChatFinishReason {
  const word = typeof reason === "string" ? reason : reason.unified;
  return word === "stop" || word === "length" || word === "content-filter" ? word : "other";
}

/** Absent where a server counts none. */
export type TokenCount = number | undefined;

/** How many tokens a call took. */
export interface ReportedUsage {
  readonly inputTokens: TokenCount | { readonly total: TokenCount; readonly cacheRead: TokenCount };
  readonly outputTokens: TokenCount | { readonly total: TokenCount };
  readonly cachedInputTokens?: TokenCount;
}

/** Version 2 models give bare counts, version 3 models a breakdown. */
function toUsage({
  inputTokens,
  outputTokens,
  cachedInputTokens,
}: ReportedUsage): ChatUsage | null {
  const input = typeof inputTokens === "object" ? inputTokens.total : inputTokens;
  const cached = typeof inputTokens === "object" ? inputTokens.cacheRead : cachedInputTokens;
  const output = typeof outputTokens === "object" ? outputTokens.total : outputTokens;
  if (input === undefined && output === undefined) return null;
  return {
    inputTokenCount: input ?? 0,
    cachedInputTokenCount: cached ?? 0,
    outputTokenCount: output ?? 0,
  };
}
