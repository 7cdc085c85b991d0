import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

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
