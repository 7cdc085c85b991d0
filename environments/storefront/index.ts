/**
 * A small shop with its customers: tasks, tools, scoring, a user without a model, and an expert.
 *
 * @module
 */
export { demonstrate, type Demonstration, type DemonstrationOptions } from "./demonstrate.ts";
export type { StorefrontData } from "./draw-task.ts";
export type { Goal, GoalEnd, Wish, WriteCall } from "./goal.ts";
export { type Random, seededRandom } from "../../src/environment/seeded-random.ts";
export { createStorefront } from "./storefront.ts";
export {
  type ExpertAction,
  storefrontExpert,
  type StorefrontExpert,
  type StorefrontExpertOptions,
  toTurnText,
} from "./storefront-expert.ts";
export { storefrontNovice, type StorefrontNoviceOptions } from "./storefront-novice.ts";
export { storefrontUser } from "./storefront-user.ts";
