import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { UsageError, describeError } from "../errors.ts";

/**
 * Starts to listen. Afterwards the failure of one connection does not end the process: a server without a listener
 * for `error` throws, for example, when the process runs out of file descriptors.
 *
 * @param place - Port 0 means any free port.
 */
export async function listenAt(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<number> {
  server.on("error", () => {});
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return (server.address() as AddressInfo).port;
}

/**
 * Starts to listen at an address that the user chose. See `listenAt()`.
 *
 * @throws UsageError if the address is in use.
 */
export async function listenOrRefuse(
  server: Server,
  place: { readonly host: string; readonly port: number },
): Promise<number> {
  try {
    return await listenAt(server, place);
  } catch (cause) {
    const message = `Cannot listen on ${place.host}:${place.port}: ${describeError(cause)}`;
    throw new UsageError(message, { cause });
  }
}

/** Stops listening and drops all connections. */
export async function stopListening(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}
