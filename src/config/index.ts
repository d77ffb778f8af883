// The public surface of `agent-belay/config`, name by name: a configuration, checked by the compiler.
export {
  type BelayConfig,
  defineConfig,
  type LimitsConfig,
  type ProcessesConfig,
  type ProviderConfig,
  type RateLimitsConfig,
  type ServerConfig,
  type SettledConfig,
} from "./config.ts";
