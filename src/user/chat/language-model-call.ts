import type { ChatUsage } from "./chat-budget.ts";
import type { ChatFinishReason, ChatMessage, ChatRequest } from "./chat-model.ts";

/** A model of the AI SDK: the members that versions 2 and 3 of the interface share. */
export interface AiSdkLanguageModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  doGenerate(call: LanguageModelCall): PromiseLike<LanguageModelResult>;
}

/** The input of such a model. */
export interface LanguageModelCall {
  prompt: PromptMessage[];
  temperature?: number;
  maxOutputTokens?: number;
  seed?: number;
  abortSignal?: AbortSignal;
}

/** The output of such a model. */
export interface LanguageModelResult {
  content: readonly { readonly type: string }[];
  finishReason: string | { readonly unified: string };
  usage: ReportedUsage;
}

/** A chat completion, independent of its source. */
export interface LanguageModelAnswer {
  /** The text parts joined, without reasoning and tool calls. */
  readonly text: string;
  /** The kind of the reply's content if the reply has no text. */
  readonly instead?: "reasoning" | "refusal";
  readonly finishReason: ChatFinishReason;
  /** The token counts. `null` if the server reports none. */
  readonly usage: ChatUsage | null;
}

/**
 * Calls an AI SDK model once, without the SDK's loop, retries and telemetry.
 *
 * @throws every error of the model. See `classifyChatError()`.
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

/** The message type that versions 2 and 3 of the interface share. */
export type PromptMessage =
  | { role: "system"; content: string }
  | { role: "user"; content: { type: "text"; text: string }[] }
  | { role: "assistant"; content: { type: "text"; text: string }[] };

function toPromptMessage({ role, content }: ChatMessage): PromptMessage {
  if (role === "system") return { role, content };
  return { role, content: [{ type: "text", text: content }] };
}

/** Reads the finish reason: a string in version 2, an object in version 3. */
function toFinishReason(reason: string | { readonly unified: string }): ChatFinishReason {
  const word = typeof reason === "string" ? reason : reason.unified;
  return word === "stop" || word === "length" || word === "content-filter" ? word : "other";
}

/** A number of tokens. Undefined if the server does not report it. */
export type TokenCount = number | undefined;

/** The token counts of a call. */
export interface ReportedUsage {
  readonly inputTokens: TokenCount | { readonly total: TokenCount; readonly cacheRead: TokenCount };
  readonly outputTokens: TokenCount | { readonly total: TokenCount };
  readonly cachedInputTokens?: TokenCount;
}

/** Reads the usage: numbers in version 2, objects in version 3. */
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
