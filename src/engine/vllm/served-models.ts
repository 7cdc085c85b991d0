import { isObject, parseLenientObject } from "../http/reply-reading.ts";

/** What `/v1/models` says of one model. */
export interface ServedModel {
  readonly id: string;
  /** Longest prompt and output together. */
  readonly contextLength?: number;
}

/**
 * Reads the body of `/v1/models`; `undefined` where it is none.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/openai/engine/protocol.py (ModelList).
 */
export function readServedModels(text: string): readonly ServedModel[] | undefined {
  const list = parseLenientObject(text)["data"];
  if (!Array.isArray(list)) return undefined;
  return list.filter(isObject).flatMap(({ id, max_model_len: length }) => {
    if (typeof id !== "string") return [];
    return [{ id, ...(typeof length === "number" && { contextLength: length }) }];
  });
}
