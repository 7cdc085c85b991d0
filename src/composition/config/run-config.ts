import { agentSettings, readAgentConfig, type AgentConfig } from "./agent-config.ts";
import { requireChatSettings } from "./chat-config.ts";
import { columnSettings, readColumns, type ColumnsConfig } from "./columns-config.ts";
import { conductSettings, readConductConfig, type ConductConfig } from "./conduct-config.ts";
import { engineSettings, readEngineConfig, type EngineConfig } from "./engine-config.ts";
import { isTauName } from "../environment/environment-names.ts";
import { limitSettings, readLimitsConfig, type LimitsConfig } from "./limits-config.ts";
import { readRendererConfig, rendererSettings, type RendererConfig } from "./renderer-config.ts";
import { readSampling, samplingSettings } from "./sampling-config.ts";
import {
  readEnvironmentConfig,
  readScopeConfig,
  scopeSettings,
  type EnvironmentConfig,
  type ScopeConfig,
} from "./scope-config.ts";
import { completeSettings, type GivenSettings, type SettingValues } from "./setting.ts";
import { readUserConfig, userSettings, type UserConfig } from "./user-config.ts";
import type { SamplingParameters } from "../../engine/engine.ts";

/** The settings of a run: the flags of `rollout` and the keys of its configuration file. */
export const runSettings = [
  ...scopeSettings,
  ...engineSettings,
  ...rendererSettings,
  ...agentSettings,
  ...samplingSettings,
  ...columnSettings,
  ...userSettings,
  ...limitSettings,
  ...conductSettings,
] as const;

/** The settings of a run by name, including defaults. JSON-able. */
export type RunSettings = SettingValues<(typeof runSettings)[number]>;

/** The configuration of a run, as `readRunConfig()` reads it. Frozen. */
export interface RunConfig {
  readonly environment: EnvironmentConfig;
  readonly scope: ScopeConfig;
  readonly user: UserConfig;
  readonly engine: EngineConfig;
  /** The configuration of the renderer. Absent if the engine returns messages. */
  readonly renderer?: RendererConfig;
  readonly agent: AgentConfig;
  readonly sampling: SamplingParameters;
  /** The side columns of rows. Absent if rows have none. */
  readonly columns?: ColumnsConfig;
  readonly limits: LimitsConfig;
  readonly conduct: ConductConfig;
  /** The settings that the configuration was read from. The run's folder stores them. */
  readonly settings: RunSettings;
}

/**
 * Reads a run's settings and fills in defaults. Names are those of the command line's flags, such
 * as `{ env: "storefront", "max-turns": 20 }`. Loads nothing.
 *
 * @throws UsageError for an unknown name, a value of the wrong type, a missing value, or settings
 *   that exclude each other.
 */
export function readRunConfig(settings: GivenSettings): RunConfig {
  const given = completeSettings(runSettings, settings);
  const limits = readLimitsConfig(given);
  const environment = readEnvironmentConfig(given);
  // τ-bench's users are models, which the settings must name. Other environments may have their own
  // user.
  const isAssumed = given.user === undefined && !isTauName(environment.name);
  const values: RunSettings = isAssumed ? { ...given, user: "scripted" } : given;
  const scope = readScopeConfig(values);
  const user: UserConfig = { ...readUserConfig(values), ...(isAssumed && { isAssumed }) };
  const engine = readEngineConfig(values);
  const columns = readColumns(values);
  const agent = readAgentConfig(values, scope.seed);
  const isChat = engine.kind === "chat";
  if (isChat) requireChatSettings(values, agent, runSettings);
  return deepFreeze({
    environment,
    scope,
    user,
    engine,
    ...(!isChat && { renderer: readRendererConfig(values, engine.kind) }),
    agent,
    sampling: readSampling(values),
    ...(columns !== undefined && { columns }),
    limits,
    conduct: readConductConfig(values, engine),
    settings: values,
  });
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const member of Object.values(value)) deepFreeze(member);
  return Object.freeze(value);
}
