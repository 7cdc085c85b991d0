/**
 * A small shop with its customers: tasks, tools, scoring, a user without a model, and an expert.
 *
 * @module
 */
export { demonstrate, type Demonstration, type DemonstrationOptions } from "./demonstrate.ts";
export type { StorefrontData } from "./draw-task.ts";
export type { Goal, GoalEnd, Wish, WriteCall } from "./goal.ts";
export { type Random, createSeededRandom } from "../../src/environment/seeded-random.ts";
export { createStorefront } from "./storefront.ts";
export {
  type ExpertAction,
  createStorefrontExpert,
  type StorefrontExpert,
  type StorefrontExpertOptions,
  toTurnText,
} from "./storefront-expert.ts";
export { createStorefrontNovice, type StorefrontNoviceOptions } from "./storefront-novice.ts";
export { createStorefrontUser } from "./storefront-user.ts";
