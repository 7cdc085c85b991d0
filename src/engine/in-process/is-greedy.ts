/** The temperature below which sampling is greedy, as in SGLang: python/sglang/srt/sampling/sampling_params.py. */
const GREEDY_BELOW = 1e-6;

/** True if sampling takes the most likely id at this temperature. */
export function isGreedy(temperature: number): boolean {
  return temperature < GREEDY_BELOW;
}
