"""Operations on partitions: cut, exchange, merge, polish, suppress, and the compiled guards that they ask."""
