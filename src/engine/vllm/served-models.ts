import { isObject } from "../../values/is-object.ts";
import { parseLenientObject } from "../http/reply-reading.ts";

/** One model of `/v1/models`. */
export interface ServedModel {
  readonly id: string;
  /** Maximum length of prompt and output together, in tokens. */
  readonly contextLength?: number;
}

/**
 * Reads the body of `/v1/models`. Returns `undefined` if it is not a list of models.
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
