// The public part of the reference engine. No other file imports from this folder's other files.
export type { RandomModelConfig } from "./random-model.ts";
export { writeRandomModel } from "./random-model.ts";
export type { ReferenceEngineOptions } from "./reference-engine.ts";
export { createReferenceEngine } from "./reference-engine.ts";
export type { ReloadableEngine, ScoringEngine } from "./threaded-engine.ts";
