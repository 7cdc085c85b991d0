/** Thrown for a request that does not fit the router's types. */
export class RouterRefused extends Error {
  readonly status: 400 | 422;

  constructor(status: RouterRefused["status"], message: string) {
    super(message);
    this.status = status;
  }
}

const KEPT_FIELDS = new Set([
  "text",
  "input_ids",
  "input_embeds",
  "image_data",
  "video_data",
  "audio_data",
  "sampling_params",
  "return_logprob",
  "logprob_start_len",
  "top_logprobs_num",
  "token_ids_logprob",
  "return_text_in_logprobs",
  "stream",
  "log_metrics",
  "return_hidden_states",
  "modalities",
  "session_params",
  "lora_path",
  "lora_id",
  "custom_logit_processor",
  "bootstrap_host",
  "bootstrap_port",
  "bootstrap_room",
  "data_parallel_rank",
  "background",
  "conversation_id",
  "priority",
  "extra_key",
  "no_logs",
  "custom_labels",
  "return_bytes",
  "return_entropy",
  "rid",
]);

const DROPPED_SAMPLING = new Set([
  "custom_params",
  "logit_bias",
  "stop_regex",
  "structural_tag",
  "spaces_between_special_tokens",
  "stream_interval",
]);

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Returns the body as the router forwards it: parsed into its own types and written again, without
 * the fields that those types lack.
 * **Source:** the openai-protocol 1.0.0 crate (lightseekorg/smg protocols/src/generate.rs and
 * sampling_params.rs), which sgl-model-gateway 0.3.2 is built with.
 * @throws RouterRefused if the body does not fit the types.
 */
export function filterGenerateBody(text: string): string {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new RouterRefused(400, `Failed to parse the request body as JSON: ${error.message}`);
  }
  const fields = body as JsonObject;
  if (fields["rid"] !== undefined && typeof fields["rid"] !== "string") {
    throw new RouterRefused(422, "Failed to deserialize the JSON body: rid: expected a string");
  }
  const kept = Object.entries(fields)
    .filter(([name]) => KEPT_FIELDS.has(name))
    .map(([name, value]) => [
      name,
      name === "sampling_params" ? filterSampling(value as JsonObject) : value,
    ]);
  return JSON.stringify(Object.fromEntries(kept));
}

function filterSampling(parameters: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(parameters).filter(([name]) => !DROPPED_SAMPLING.has(name)),
  );
}
