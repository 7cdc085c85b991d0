import type { McpServer } from "@modelcontextprotocol/server";

/** A server with the named tools; by default all. */
export function createServer(only?: readonly string[]): McpServer;
