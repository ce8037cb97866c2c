select label as load, round(sum(succeeded) * 1e9 / (w.end_ns - w.start_ns)) as per_second,
       round(sum(latency_sum_ns) / 1e6 / sum(succeeded), 1) as mean_ms
from windows w join load_seconds s
  on s.trial = w.trial and s.start_ns >= w.start_ns and s.start_ns < w.end_ns
where w.kind = 'steady' group by w.position
