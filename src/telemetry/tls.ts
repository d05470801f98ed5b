import { X509Certificate } from "node:crypto";
import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import type { TlsFilesOptions, TlsIdentity } from "../net/tls-files.ts";

/** Logs changes of the rpc listener's TLS files, and reports when its certificate expires. */
export function tlsTelemetry(registry: Registry, log: Logger) {
  let expiry: Gauge | undefined;
  const observer: Pick<TlsFilesOptions, "onChange" | "onProblem"> = {
    onChange({ cert }) {
      const { validTo, fingerprint256 } = new X509Certificate(cert);
      log.info({ validTo, fingerprint256 }, "TLS files changed: new connections use them");
    },
    onProblem({ variable, message }) {
      log.error(
        { variable, problem: message },
        "cannot use the changed TLS files: the previous ones stay in use",
      );
    },
  };
  return {
    observer,
    refresh({ cert }: TlsIdentity): void {
      expiry ??= new Gauge({
        name: "payments_gateway_tls_certificate_expiry_timestamp_seconds",
        help: "When the certificate of the rpc listener expires, in seconds since the epoch; absent without TLS",
        registers: [registry],
      });
      expiry.set(new X509Certificate(cert).validToDate.getTime() / 1_000);
    },
  };
}
