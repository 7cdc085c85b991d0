import { customInput, isActionForm, toAction, type ActionForm } from "../call-form.ts";
import type { RequestedTurn, ReplyPart, ReplyStart, ReplyToken } from "../conversation.ts";
import { encodeLogprobs } from "./token-logprobs.ts";
import { namespacedTools } from "./tool-namespaces.ts";

type CallPart = Extract<ReplyPart, { readonly type: "call" }>;

/** Encodes a part as an item, as a later request may refer to it by id. */
export function encodeItem(part: ReplyPart, withEncryptedContent: boolean): object {
  const { id } = part;
  switch (part.type) {
    case "reasoning": {
      const content = [{ type: "reasoning_text", text: part.text }];
      const encrypted = withEncryptedContent ? { encrypted_content: part.signature } : {};
      return { type: "reasoning", id, summary: [], content, ...encrypted, status: "completed" };
    }
    case "text":
      return {
        type: "message",
        id,
        status: "completed",
        role: "assistant",
        content: [outputText(part.text)],
      };
    case "call":
      return encodeCall(part);
  }
}

function encodeCall(part: CallPart): object {
  const { id, callId: call_id, name, text, form } = part;
  const status = "completed";
  if (isActionForm(form)) {
    return { ...actionItem(form, toAction(form, text) ?? {}), id, call_id, status };
  }
  return form === "custom"
    ? { type: "custom_tool_call", id, call_id, name, input: customInput(text), status }
    : { type: "function_call", id, call_id, name, arguments: text, status };
}

function actionItem(form: ActionForm, action: object): object {
  switch (form) {
    case "local-shell":
      return { type: "local_shell_call", action };
    case "shell":
      return { type: "shell_call", action, environment: { type: "local" } };
    case "apply-patch":
      return { type: "apply_patch_call", operation: action };
  }
}

/**
 * Encodes a part as an item with tool names as the request gives them: namespace and name apart.
 */
export function itemFor(
  { requested }: ReplyStart,
  part: ReplyPart,
  withEncryptedContent: boolean,
): object {
  const item = encodeItem(part, withEncryptedContent);
  if (part.type !== "call" || isActionForm(part.form)) return item;
  return { ...item, ...calledName(requested, part.name) };
}

/**
 * Encodes a finished part as an item, with the tokens of its text if the client requested logprobs.
 */
export function finishedItem(
  start: ReplyStart,
  part: ReplyPart,
  tokens?: readonly ReplyToken[],
): object {
  const item = itemFor(start, part, start.requested.includesEncryptedReasoning);
  return part.type === "text" ? { ...item, content: [outputText(part.text, tokens)] } : item;
}

/** Returns a tool's name as the client knows it, with its namespace if it has one. */
export function calledName({ echo }: RequestedTurn, name: string): { readonly name: string } {
  return namespacedTools(echo["tools"]).get(name) ?? { name };
}

function outputText(text: string, tokens: readonly ReplyToken[] = []) {
  return { type: "output_text", text, annotations: [], logprobs: encodeLogprobs(tokens) };
}

/** Returns the part of an item's content with this text. */
export function contentPart(part: ReplyPart, text: string, tokens?: readonly ReplyToken[]): object {
  return part.type === "text" ? outputText(text, tokens) : { type: "reasoning_text", text };
}
