/** The control tokens of Inkling's message framing. */
export const inkling = {
  messageModel: "<|message_model|>",
  contentText: "<|content_text|>",
  contentThinking: "<|content_thinking|>",
  invokeJson: "<|content_invoke_tool_json|>",
  invokeText: "<|content_invoke_tool_text|>",
  endSampling: "<|content_model_end_sampling|>",
  endMessage: "<|end_message|>",
} as const;

/** All tokens that count as control tokens. */
const inklingControlTokens: readonly string[] = [
  ...Object.values(inkling),
  "<|endoftext|>",
  "<|message_user|>",
  "<|message_system|>",
  "<|message_tool|>",
  "<|content_image|>",
  "<|content_audio_input|>",
  "<|content_tool_error|>",
  "<|content_xml|>",
  "<|audio_end|>",
  "<|content_invoke_tool|>",
  "<|model_trigger_generation|>",
];

/**
 * Returns a new pattern that matches any control token. Use a new one for each scan.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/inkling_tokenizer.py`.
 */
export function inklingControlPattern(): RegExp {
  return new RegExp(
    inklingControlTokens.map((token) => token.replaceAll("|", "\\|")).join("|"),
    "g",
  );
}
