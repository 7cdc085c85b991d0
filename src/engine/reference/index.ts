// The reference engine's one door: nothing else of this folder is imported from outside of it.
export type { RandomModelConfig } from "./random-model.ts";
export { writeRandomModel } from "./random-model.ts";
export type { ReferenceEngineOptions } from "./reference-engine.ts";
export { createReferenceEngine } from "./reference-engine.ts";
export type { ReloadableEngine, ScoringEngine } from "./threaded-engine.ts";
