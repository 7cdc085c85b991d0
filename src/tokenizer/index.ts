/**
 * Tokenizers and model folders.
 *
 * @module
 */
export type { FetchModelOptions } from "../hub/fetch-model.ts";
export { findModelFolder } from "../hub/find-model-folder.ts";
export type { HubVariables } from "../hub/hub-place.ts";
export type { AddedToken, TokenCodec } from "./codec.ts";
export type { DisguisingText } from "./disguising-text.ts";
export { IncrementalDecoder } from "./incremental-decoder.ts";
export { loadTokenCodec, type LoadTokenCodecOptions } from "./load-codec.ts";
