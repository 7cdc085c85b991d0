import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * Starts to listen, and from then on keeps a failure of one connection from ending the process: a
 * server without a listener for `error` throws, for example, when no file is left for a connection.
 *
 * @param place - Port 0 means any free one.
 * @returns the port.
 * @throws the server's error, such as EADDRINUSE.
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
