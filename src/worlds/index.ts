/**
 * Tools and environments of others: Python, MCP servers, OpenEnv, sandboxes.
 *
 * @module
 */
export {
  createPythonEnvironment,
  type PythonEnvironment,
  type PythonEnvironmentOptions,
} from "../environment/python/create-python-environment.ts";
export type { PythonTask } from "../environment/python/python-answers.ts";
export type { McpAddress, McpCommand, McpServer } from "./mcp/mcp-server.ts";
export { createMcpTools, type McpTools, type McpToolsOptions } from "./mcp/mcp-tools.ts";
export type { OpenEnvOptions, OpenEnvReward, OpenEnvTask } from "./open-env/open-env-options.ts";
export type { OpenEnvPlace } from "./open-env/open-env-session.ts";
export { createOpenEnv, type OpenEnvEnvironment } from "./open-env/open-env.ts";
export {
  serveOpenEnv,
  type ServeOpenEnvOptions,
  type ServedOpenEnv,
} from "./open-env/serve-open-env.ts";
export { defineSandboxes } from "./sandbox/define-sandboxes.ts";
export { createDockerSandboxes, type DockerSandboxOptions } from "./sandbox/docker-sandboxes.ts";
export { createLocalSandboxes, type LocalSandboxOptions } from "./sandbox/local-sandboxes.ts";
export {
  readSandboxFile,
  writeSandboxFile,
  type Sandbox,
  type SandboxCommandOptions,
  type SandboxResult,
  type Sandboxes,
} from "./sandbox/sandbox.ts";
