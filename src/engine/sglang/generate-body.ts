import type { SamplingParameters } from "../engine.ts";
import type { PieceRequest } from "../piece-request.ts";

/**
 * The JSON body of `POST /generate`. `logprob_start_len` of -1 asks for the output's logprobs only:
 * scoring the prompt would defeat the prefix cache.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/managers/io_struct.py (GenerateReqInput) and
 * python/sglang/srt/sampling/sampling_params.py; the three text settings as in THUDM/slime.
 */
export function encodeGenerateBody(piece: PieceRequest): string {
  return JSON.stringify({
    rid: piece.requestId,
    input_ids: piece.inputIds,
    sampling_params: {
      ...encodeSampling(piece.turn.sampling),
      max_new_tokens: piece.maxNewTokens,
      stop_token_ids: piece.turn.stopTokenIds,
      skip_special_tokens: false,
      spaces_between_special_tokens: false,
      no_stop_trim: true,
    },
    return_logprob: true,
    logprob_start_len: -1,
    stream: false,
  });
}

/**
 * Every parameter is spelled out, because a server fills what is left out with preferences of its
 * own. `extra` may add and replace, but not what the turn itself decides.
 */
function encodeSampling(sampling: SamplingParameters): Record<string, unknown> {
  return {
    temperature: sampling.temperature ?? 1,
    top_p: sampling.topP ?? 1,
    top_k: sampling.topK ?? -1,
    min_p: sampling.minP ?? 0,
    frequency_penalty: sampling.frequencyPenalty ?? 0,
    presence_penalty: sampling.presencePenalty ?? 0,
    repetition_penalty: sampling.repetitionPenalty ?? 1,
    ...(sampling.seed === undefined ? {} : { sampling_seed: sampling.seed }),
    ...sampling.extra,
  };
}
