import { isPythonSpace } from "../python/white-space.ts";

/** The markers of Muse's recipient channels, and of the calls in them. */
export const muse = {
  start: "<|start|>",
  message: "<|message|>",
  endOfMessage: "<|eom|>",
  endOfTurn: "<|eot|>",
  callsOpen: "<atem:function_calls>",
  callsClose: "</atem:function_calls>",
  invokeOpen: "<atem:invoke",
  invokeClose: "</atem:invoke>",
} as const;

/** Whether the text holds any part of a call. */
export function holdsMuseCall(text: string): boolean {
  return text.includes(muse.invokeOpen) || text.includes(muse.callsOpen);
}

/** The recipient that a channel's header names. */
export function readRecipient(header: string): string | undefined {
  const match = /to=([^<]+)/.exec(header);
  if (match === null) return undefined;
  const recipient = /^\S+/u.exec(cutAtSpace(match[1] ?? ""))?.[0];
  return recipient ?? readRecipient(header.slice(match.index + 3));
}

function cutAtSpace(text: string): string {
  let end = 0;
  while (end < text.length && !isPythonSpace(text.charCodeAt(end))) end += 1;
  return text.slice(0, end);
}

/**
 * Whether a text that begins without `<|start|>` begins with a header: `to=` and a recipient, up to
 * the message marker.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/muse_glimmer_format.py`.
 */
export function couldStartHeader(text: string): boolean {
  const stripped = text.slice(spaceLength(text));
  if (stripped === "") return true;
  if (!stripped.startsWith("to=") && !"to=".startsWith(stripped.slice(0, 3))) return false;
  if (stripped.includes(muse.message)) return true;
  const angle = stripped.indexOf("<", 3);
  const recipient = stripped.slice(3, angle === -1 ? stripped.length : angle);
  if (cutAtSpace(recipient) !== recipient) return false;
  return angle === -1 || muse.message.startsWith(stripped.slice(angle));
}

/** How much white space a text begins with. */
export function spaceLength(text: string): number {
  let length = 0;
  while (length < text.length && isPythonSpace(text.charCodeAt(length))) length += 1;
  return length;
}
